package server

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// fakePods has pods and no changes.
type fakePods []local.Pod

func (f fakePods) WaitPod(_ context.Context, namespace, name string, accept func(local.Pod, bool) bool) error {
	for _, p := range f {
		if p.Namespace == namespace && p.Name == name {
			accept(p, true)
			return nil
		}
	}
	accept(local.Pod{}, false)
	return nil
}

func (f fakePods) LocalPods() []local.Pod { return f }

// fakeNode is an agent whose node has subnets.
type fakeNode []netip.Prefix

func (n fakeNode) Settings(context.Context) (Settings, error) {
	return Settings{NodeSubnets: annotation.SetNodeSubnets("",
		map[names.Network][]netip.Prefix{names.Own: n, "blue": n})}, nil
}

func (fakeNode) Missing() error { return nil }

func dualStack() fakeNode {
	return fakeNode{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd01:0:0:1::/64")}
}

// attached is a pod with the annotation that the master writes for a number.
func attached(name string, created int64, number uint64, keys ...string) local.Pod {
	nets := map[string]annotation.PodNetwork{}
	for _, key := range append(keys, "default") {
		_, iface := names.EntryOf(key)
		nets[key] = subnet.Attachment(dualStack(), []uint64{number, number}, iface)
	}
	return local.Pod{Namespace: "default", Name: name, UID: "u-" + name, Created: created,
		Network: annotation.MarshalAttachments(nets)}
}

// eth0 is the interface that Kubernetes itself asks for.
func eth0() cluster.Attachment { return cluster.Attachment{Network: names.Own} }

// Who may create a pod may write its annotation. The agent wires the pod only with what the master could have written.
func TestHostileAnnotations(t *testing.T) {
	const mac, own = "0a:58:0a:f4:01:05", `"10.244.1.5/24","fd01:0:0:1::5/64"`
	network := func(ips, mac, gateways, more string) string {
		return `{"default":{"ip_addresses":[` + ips + `],"mac_address":"` + mac + `","gateway_ips":[` + gateways + `]` +
			more + `}}`
	}
	const routers = `"10.244.1.1","fd01:0:0:1::1"`
	for what, c := range map[string]struct{ network, refused string }{
		"the master's": {network(own, mac, routers, ""), ""},
		"another node's pods": {network(`"10.244.2.5/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.2.5/24 is not in the node's subnet 10.244.1.0/24"},
		"another node's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:2::5/64"`, mac, routers, ""),
			"fd01:0:0:2::5/64 is not in the node's subnet fd01:0:0:1::/64"},
		"a wider network": {network(`"10.244.1.5/16","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.5/16 is not in the node's subnet"},
		"the router's": {network(`"10.244.1.1/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.1/24 is not one for pods"},
		"the router's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:1::1/64"`, mac, routers, ""),
			"fd01:0:0:1::1/64 is not one for pods"},
		"the management port's": {network(`"10.244.1.2/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.2/24 is not one for pods"},
		"the broadcast address": {network(`"10.244.1.255/24","fd01:0:0:1::5/64"`, mac, routers, ""),
			"10.244.1.255/24 is not one for pods"},
		"the network's": {network(`"10.244.1.0/24","fd01:0:0:1::/64"`, mac, routers, ""),
			"10.244.1.0/24 is not one for pods"},
		"the host's": {network(`"172.18.0.3/16","fd01:0:0:1::5/64"`, mac, routers, ""),
			"172.18.0.3/16 is not in the node's subnet"},
		"one family only": {network(`"10.244.1.5/24"`, mac, `"10.244.1.1"`, ""),
			"want one address in each of the node's subnets"},
		"another MAC":     {network(own, "0a:58:0a:f4:01:01", routers, ""), "mac_address 0a:58:0a:f4:01:01"},
		"a multicast MAC": {network(own, "ff:ff:ff:ff:ff:ff", routers, ""), "mac_address ff:ff:ff:ff:ff:ff"},
		"another gateway": {network(own, mac, `"10.244.1.9","fd01:0:0:1::1"`, ""),
			"gateway_ips [10.244.1.9 fd01:0:0:1::1]"},
		"no gateway": {network(own, mac, "", ""),
			"want 0a:58:0a:f4:01:05, [10.244.1.1 fd01:0:0:1::1] and none"},
		"a route": {network(own, mac, routers, `,"routes":[{"dest":"10.96.0.0/16","nextHop":"10.244.1.9"}]`),
			"routes [{10.96.0.0/16 10.244.1.9}]"},
		"a route, IPv6": {network(own, mac, routers, `,"routes":[{"dest":"fd02::/112","nextHop":"fd01:0:0:1::9"}]`),
			"routes [{fd02::/112 fd01:0:0:1::9}]"},
		"an older pod's": {network(`"10.244.1.9/24","fd01:0:0:1::9/64"`, "0a:58:0a:f4:01:09", routers, ""),
			"10.244.1.9 is the address of the older pod default/victim"},
		"an older pod's, IPv6": {network(`"10.244.1.5/24","fd01:0:0:1::9/64"`, mac, routers, ""),
			"fd01:0:0:1::9 is the address of the older pod default/victim"},
		"a younger pod's": {network(`"10.244.1.12/24","fd01:0:0:1::c/64"`, "0a:58:0a:f4:01:0c", routers, ""),
			""},
		"a finished pod's": {network(`"10.244.1.13/24","fd01:0:0:1::d/64"`, "0a:58:0a:f4:01:0d", routers, ""),
			""},
		"no JSON": {"{", "not JSON"},
	} {
		t.Run(what, func(t *testing.T) {
			p := local.Pod{Namespace: "default", Name: "p", UID: "u-p", Created: 5, Network: c.network}
			finished := attached("finished", 1, 13)
			finished.Released = true
			junk := attached("junk", 1, 77)
			junk.Network = strings.Replace(attached("junk", 1, 5, "default/x").Network, `"default":`, `"gone":`, 1)
			s := &Server{Node: dualStack(), Pods: fakePods{p, attached("victim", 1, 9, "blue/net1"),
				attached("young", 9, 12), finished, junk,
				{Namespace: "default", Name: "broken", UID: "u-b", Network: "{"}}}
			_, err := s.networkOf(t.Context(), eth0(), p)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}

// What holds in the cluster's own network holds in another: an entry counts only with what the master could have written
// for this interface of this network, and not with an address that an older pod or an earlier interface has there.
func TestHostileAnnotationsInAnotherNetwork(t *testing.T) {
	entry := func(number uint64, iface string) annotation.PodNetwork {
		return subnet.Attachment(dualStack(), []uint64{number, number}, iface)
	}
	foreign, moved := entry(5, "net1"), entry(5, "net1")
	foreign.IPs = []netip.Prefix{netip.MustParsePrefix("10.244.2.5/24"), foreign.IPs[1]}
	moved.Routes = []annotation.Route{{Dest: netip.MustParsePrefix("10.96.0.0/16"), NextHop: netip.MustParseAddr("10.244.1.9")}}
	type nets = map[string]annotation.PodNetwork
	for what, c := range map[string]struct {
		nets    nets
		in      cluster.Attachment
		refused string
	}{
		"the master's": {nets{"blue/net1": entry(5, "net1")}, cluster.Attachment{Network: "blue", Interface: "net1"}, ""},
		"two interfaces": {nets{"blue/net1": entry(5, "net1"), "blue/net2": entry(6, "net2")},
			cluster.Attachment{Network: "blue", Interface: "net2"}, ""},
		"the same address in another network": {nets{"default": entry(5, ""), "blue/net1": entry(5, "net1")},
			cluster.Attachment{Network: "blue", Interface: "net1"}, ""},
		"another interface": {nets{"blue/net1": entry(5, "net1")}, cluster.Attachment{Network: "blue", Interface: "net2"},
			`it has no entry "blue/net2"`},
		"another network": {nets{"default": entry(5, ""), "blue/net1": entry(5, "net1")},
			cluster.Attachment{Network: "green", Interface: "net1"}, `it has no entry "green/net1"`},
		"a network without subnets here": {nets{"green/net1": entry(5, "net1")},
			cluster.Attachment{Network: "green", Interface: "net1"}, "want one address in each of the node's subnets []"},
		"another node's pods": {nets{"blue/net1": foreign}, cluster.Attachment{Network: "blue", Interface: "net1"},
			"10.244.2.5/24 is not in the node's subnet 10.244.1.0/24"},
		"a default route": {nets{"blue/net1": entry(5, "")}, cluster.Attachment{Network: "blue", Interface: "net1"},
			"gateway_ips [10.244.1.1 fd01:0:0:1::1]"},
		"a route": {nets{"blue/net1": moved}, cluster.Attachment{Network: "blue", Interface: "net1"},
			"routes [{10.96.0.0/16 10.244.1.9}]"},
		"an older pod's": {nets{"blue/net1": entry(9, "net1")}, cluster.Attachment{Network: "blue", Interface: "net1"},
			"10.244.1.9 is the address of the older pod default/victim"},
		"an earlier interface's": {nets{"blue/net1": entry(5, "net1"), "blue/net2": entry(5, "net2")},
			cluster.Attachment{Network: "blue", Interface: "net2"}, "10.244.1.5 is the address of"},
	} {
		t.Run(what, func(t *testing.T) {
			p := local.Pod{Namespace: "default", Name: "p", UID: "u-p", Created: 5,
				Network: annotation.MarshalAttachments(c.nets)}
			s := &Server{Node: dualStack(), Pods: fakePods{p, attached("victim", 1, 9, "blue/net7"), attached("other", 1, 5)}}
			_, err := s.networkOf(t.Context(), c.in, p)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}

// Before the answer the agent looks again: the pod may be gone, or the master may have written something else.
func TestConfirm(t *testing.T) {
	made := subnet.Attachment(dualStack(), []uint64{5, 5}, "")
	anew := attached("p", 5, 5)
	anew.UID = "another"
	for what, c := range map[string]struct {
		now  fakePods
		want string
	}{
		"nothing changed": {fakePods{attached("p", 5, 5)}, ""},
		"gone":            {nil, errPodGone.Error()},
		"made anew":       {fakePods{anew}, errPodGone.Error()},
		"other addresses": {fakePods{attached("p", 5, 6)}, errNetworkChanged.Error()},
		"an older pod":    {fakePods{attached("p", 5, 5), attached("o", 1, 5)}, "is the address of the older pod default/o"},
		"no annotation":   {fakePods{{Namespace: "default", Name: "p", UID: "u-p"}}, "it has no entry"},
	} {
		t.Run(what, func(t *testing.T) {
			s := &Server{Node: dualStack(), Pods: c.now}
			err := s.confirm(t.Context(), eth0(), podRef{"default", "p", "u-p"}, attached("p", 5, 5), made)
			var e *protocol.Error
			if c.want == "" && err != nil || c.want != "" &&
				(!errors.As(err, &e) || e.Code != protocol.CodeTryAgain || !strings.Contains(e.Details, c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
