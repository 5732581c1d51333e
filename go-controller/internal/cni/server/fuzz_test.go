package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
)

// The runtime's input is refused or understood, and none panics (CNI specification 1.1.0, section 2).
func FuzzInput(f *testing.F) {
	f.Add(`{"cniVersion":"1.1.0","name":"n","type":"ovn_cni","prevResult":{"ips":[{"address":"10.1.2.3/24"}]}}`,
		"IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_UID=c")
	f.Add(`{"cniVersion":"0.2.0","prevResult":{"ip4":{"ip":"10.1.2.3/24"}}}`, "K8S_POD_NAME=b")
	f.Add(`{"cniVersion":"1.0.0","prevResult":{"interfaces":[null,{"name":"a","sandbox":"b"}],"ips":[null]}}`, "")
	f.Add(`{"cniVersion":"1.0.0","prevResult":{"interfaces":[{"name":"eth0","mac":"0a:58:0a:f4:01:03","sandbox":"b"}],`+
		`"ips":[{"interface":0,"address":"10.244.1.3/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.244.1.1"}]}}`, "")
	f.Add(`{"cniVersion":"x","prevResult":[]}`, ";;=")
	f.Fuzz(func(t *testing.T, conf, args string) {
		if _, prev, err := parseConf(json.RawMessage(conf)); err == nil && prev != nil {
			for _, iface := range prev.Interfaces {
				// Only that it does not panic.
				_, _ = specOf(prev, requestOf(protocol.Request{IfName: iface.Name}))
			}
		}
		if p, err := parsePod(args); err == nil && (p.namespace == "" || p.name == "") {
			t.Errorf("%q is pod %v", args, p)
		}
	})
}

// Of an annotation, only what OVN, Open vSwitch and the kernel take as it is becomes an interface.
func FuzzAnnotation(f *testing.F) {
	f.Add(annotated("p", 5, 5, "shop.blue/net1").Network)
	f.Add(`{"default":{"ip_addresses":["10.244.1.5/24","fd01:0:0:1::5/64"],"mac_address":"0a:58:0a:f4:01:05",` +
		`"gateway_ips":["10.244.1.1","fd01:0:0:1::1"]},"blue/net1":{"ip_addresses":["10.99.0.3/24"],"mac_address":` +
		`"0a:58:0a:63:00:03","routes":[{"dest":"10.99.0.0/16","nextHop":"10.99.0.1"}],"mtu":1300}}`)
	f.Fuzz(func(t *testing.T, value string) {
		p := annotated("p", 5, 5)
		p.Network = value
		s := &Server{Node: dualStack(), Pods: fakePods{p}}
		list, err := s.networksOf(t.Context(), eth0(), p)
		if err != nil {
			return
		}
		names := map[string]bool{"lo": true}
		for _, i := range eth0().interfaces(podRef{"default", "p", "u-p"}, p.UID, Settings{MTU: 1442}, list) {
			name := i.spec.IfName
			if names[name] || name == "" || len(name) > 15 || strings.ContainsAny(name, " /:%\t\n\x00") || i.spec.MTU < 576 {
				t.Errorf("%s: interface %q, MTU %d", value, name, i.spec.MTU)
			}
			names[name] = true
			if got := strings.Count(i.logicalPort(), "_"); name == "eth0" && got != 1 || name != "eth0" &&
				!strings.HasSuffix(i.logicalPort(), "_default_p_"+name) {
				t.Errorf("%s: logical port %s at %s", value, i.logicalPort(), name)
			}
			for _, r := range i.spec.Network.Routes {
				if r.Dest.Bits() == 0 {
					t.Errorf("%s: route %s", value, r.Dest)
				}
			}
		}
	})
}
