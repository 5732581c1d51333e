package attachment

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func TestRequests(t *testing.T) {
	at := func(network names.Network, iface string) cluster.Attachment {
		return cluster.Attachment{Network: network, Interface: iface}
	}
	static := at("shop.blue", "net1")
	static.Asked = cluster.Asked{IPv4: netip.MustParsePrefix("10.99.0.7/24"), IPv6: netip.MustParsePrefix("fd99::7/128"),
		MAC: ipnet.MAC{2, 5: 7}}
	kept := at("shop.blue", "net1")
	kept.Asked.Claim = "vm.blue"
	unserved := at("shop.blue", "net1")
	unserved.Asked.Unserved = `field "cni-args" is not served in this network, want a request without it`
	for value, want := range map[string][]cluster.Attachment{
		"":                          nil,
		"blue":                      {at("shop.blue", "net1")},
		" blue , default/red@eth9 ": {at("shop.blue", "net1"), at("default.red", "eth9")},
		"shop/blue,blue":            {at("shop.blue", "net1"), at("shop.blue", "net2")},
		`[{"name":"blue"},{"name":"red","namespace":"default","interface":"a_b"}]`: {at("shop.blue", "net1"),
			at("default.red", "a_b")},
		`[{"name":"blue","ips":["10.99.0.7/24","fd99::7"],"mac":"02:00:00:00:00:07"}]`: {static},
		`[{"name":"blue","cni-args":{},"infiniband-guid":"x"}]`:                        {unserved},
		`[{"name":"blue","ipam-claim-reference":"vm.blue"}]`:                           {kept},
		"team.blue": {at("shop.team.blue", "net1")},
	} {
		got, err := Requests("shop", value)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", value, got, err, want)
		}
		for _, a := range got {
			namespace, name, ok := a.Network.Definition()
			if !ok || names.Defined(namespace, name) != a.Network || namespace != "shop" && namespace != "default" {
				t.Errorf("%s: network %s is of definition %s/%s", value, a.Network, namespace, name)
			}
		}
	}
}

func TestRequestsThatCannotBeMet(t *testing.T) {
	many := strings.Repeat("blue,", annotation.MaxInterfaces+1)
	for value, want := range map[string]string{
		"Blue":                           "want the name of a NetworkAttachmentDefinition",
		"blue@":                          "",
		"blue@eth0":                      `interface "eth0"`,
		"blue@lo":                        `interface "lo"`,
		"blue@sixteen-letters-":          `interface "sixteen-letters-"`,
		"blue@a b":                       `interface "a b"`,
		"blue@../x":                      `interface "../x"`,
		"blue@net2,red":                  `network 2, "red": interface "net2" is another network's`,
		many:                             "17 networks, want at most 16",
		"[":                              "not a list of networks",
		`["blue"]`:                       `network 1: want such as {"name":"blue"`,
		`[{"name":1}]`:                   "network 1: want such as",
		strings.Repeat("x", mostBytes+1): "want at most 16384",
	} {
		got, err := Requests("shop", value)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", value, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.80s: %+v, %v; want %q", value, got, err, want)
		}
	}
}

// What is not served in networks of this cluster may be what another plugin serves.
func TestRequestsThatAreNotServed(t *testing.T) {
	for value, want := range map[string]string{
		"bank/vault": `it is in namespace "bank", want one in the pod's own namespace, or in namespace "default"`,
		`[{"name":"blue","ips":["10.99.0.7","10.99.0.8"]}]`: "are of one address family",
		`[{"name":"blue","ips":["x"]}]`:                     `ips: "x": want an address`,
		`[{"name":"blue","ips":["fe80::1%eth0"]}]`:          "want an address",
		`[{"name":"blue","ips":["::ffff:10.0.0.1"]}]`:       "IPv4-mapped",
		`[{"name":"blue","ips":["127.0.0.1"]}]`:             "want an address that an interface can have",
		`[{"name":"blue","ips":["224.0.0.1/4"]}]`:           "want an address that an interface can have",
		`[{"name":"blue","ipam-claim-reference":"a/b"}]`:    `ipam-claim-reference "a/b": want the name of an IPAMClaim`,
		`[{"name":"blue","mac":"x"}]`:                       `mac "x": want an Ethernet address`,
		`[{"name":"blue","mac":"01:00:00:00:00:01"}]`:       "want a unicast address",
		`[{"name":"blue","mac":"00:00:00:00:00:00"}]`:       "want a unicast address",
		`[{"name":"blue","mac":"0a:58:0a:63:00:05"}]`:       "are for pods that ask for none",
	} {
		got, err := Requests("shop", value)
		if err != nil || len(got) != 1 || !strings.Contains(got[0].Asked.Unserved, want) || len(got[0].Asked.IPs()) > 0 {
			t.Errorf("%.80s: %+v, %v; want %q", value, got, err, want)
		}
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("shop", "blue, default/red@eth9")
	f.Add("shop", `[{"name":"blue","ips":["10.99.0.7/24","fd99::7"],"mac":"02:00:00:00:00:07","cni-args":{}}]`)
	f.Fuzz(func(t *testing.T, namespace, value string) {
		got, err := Requests(namespace, value)
		seen := map[string]bool{}
		for _, a := range got {
			if err != nil || seen[a.Interface] || !names.IsFurtherInterface(a.Interface) {
				t.Errorf("%q: %+v, %v", value, got, err)
			}
			seen[a.Interface] = true
		}
		if len(got) > annotation.MaxInterfaces {
			t.Errorf("%q: %d interfaces", value, len(got))
		}
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add(`{"cniVersion":"1.1.0","name":"blue","type":"ovn-k8s-cni-overlay","topology":"layer2","subnets":"10.99.0.0/24"}`)
	f.Add(`{"name":"b","type":"ovn-k8s-cni-overlay","topology":"localnet","vlanID":7,"excludeSubnets":"10.0.0.0/30"}`)
	f.Add(`{"plugins":[{"type":"macvlan"}]}`)
	f.Fuzz(func(t *testing.T, conf string) {
		n, err := Definition(cluster.Name{Namespace: "shop", Name: "blue"}, conf)
		if err != nil && n != nil {
			t.Errorf("%q: %+v, %v", conf, n, err)
		}
		if n != nil && (n.Name != "shop.blue" || n.Hosts || n.Services || !n.Equal(n)) {
			t.Errorf("%q: %+v", conf, n)
		}
		_ = fmt.Sprint(err)
	})
}
