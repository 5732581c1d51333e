package server

import (
	"encoding/json"
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
				_, _ = specOf(prev, protocol.Request{IfName: iface.Name})
			}
		}
		if p, err := parsePod(args); err == nil && (p.namespace == "" || p.name == "") {
			t.Errorf("%q is pod %v", args, p)
		}
	})
}
