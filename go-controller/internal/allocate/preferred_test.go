package allocate

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// preferring is a pod that asks for addresses in its primary network.
func preferring(namespace, name, node string, ips ...string) *cluster.Pod {
	p := podIn(namespace, name, node)
	for _, ip := range prefixes(ips...) {
		if ip.Addr().Is4() {
			p.Preferred.IPv4 = ip
		} else {
			p.Preferred.IPv6 = ip
		}
	}
	return p
}

// toldOf checks that the annotation of a pod has a text.
func (w *world) toldOf(p *cluster.Pod, want string) {
	w.t.Helper()
	if got := w.told(p); !strings.Contains(got, want) {
		w.t.Errorf("pod %s is told %s, want %s", p.Name, got, want)
	}
}

// A pod gets what it asks for in its primary network, or waits until that is free.
func TestPreferred(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	own := primary("red", "own", "10.77.0.0/16", "fd77::/64")
	own.Network.Excluded, own.Network.Reserved = prefixes("10.77.9.0/24"), prefixes("10.77.0.0/28", "fd77::/124")
	w.put(node("n1", 1), node("n2", 2), labelled("red", true), labelled("shop", false), own)
	a := preferring("red", "a", "n1", "10.77.0.5/16", "fd77::5/128")
	a.Preferred.MAC = ipnet.MAC{2, 5: 7}
	auto := podIn("red", "auto", "n1")
	w.put(a, auto)
	w.toldOf(a, `"red.own/ovn-udn1":{"ip_addresses":["10.77.0.5/16","fd77::5/64"],"mac_address":"02:00:00:00:00:07",`+
		`"gateway_ips":["10.77.0.1","fd77::1"],"role":"primary"}`)
	w.toldOf(auto, `["10.77.0.16/16","fd77::10/64"]`) // the first that is not reserved
	for ip, want := range map[string]string{
		"10.77.0.5/16": "10.77.0.5/16 is already the address of Pod red/a: the pod waits for it",
		"fd77::5/64":   "fd77::5/64 is already the address of Pod red/a: the pod waits for it",
		"10.77.0.1/16": "10.77.0.1/16 is the address of the network's router",
		"10.77.9.1/16": "10.77.9.1/16 is in 10.77.9.0/24, which the network excludes",
		"10.78.0.1/16": "10.78.0.1 is in none of the subnets",
		"10.77.0.7/24": "10.77.0.7/24 is not in the network's subnet 10.77.0.0/16",
	} {
		p := preferring("red", "p", "n1", ip)
		w.put(p)
		w.result(1, "PodAddressRefused: red.own: annotation v1.multus-cni.io/default-network: "+want)
		w.toldOf(p, `"waiting":"annotation v1.multus-cni.io/default-network: `+want[:12])
		w.drop(p)
	}
	b := preferring("red", "b", "n2", "10.77.0.5/16")
	w.put(b)
	bad := preferring("red", "bad", "n2")
	bad.Preferred = cluster.Asked{Unserved: "ips: x"}
	w.put(bad)
	w.result(1, "annotation v1.multus-cni.io/default-network: NetworkAttachmentDefinition red/own: ips: x: a pod that")
	again := w.restarted()
	again.toldOf(a, `["10.77.0.5/16","fd77::5/64"]`)
	w.drop(a)
	w.put(node("n9", 9))
	w.toldOf(b, `["10.77.0.5/16","fd77::11/64"]`)
	greedy := preferring("shop", "greedy", "n1", "10.77.0.6/16")
	w.put(greedy)
	w.result(1, "NoPrimaryNetwork: annotation v1.multus-cni.io/default-network: it has no effect, since namespace shop")
	if got := w.told(greedy); strings.Contains(got, "waiting") {
		t.Errorf("a pod without a primary network is told %s, want it to start", got)
	}
}

// In a network with a subnet for each node, the address must be in that of the pod's node.
func TestPreferredInSubnetOfNode(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	own := primary("red", "own", "10.77.0.0/16")
	own.Network.Topology = cluster.Layer3
	own.Network.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16"), NodeLength: 24}}
	a, b := preferring("red", "a", "n1", "10.77.0.9/24"), preferring("red", "b", "n2", "10.77.0.10/24")
	w.put(node("n1", 1), node("n2", 2), labelled("red", true), own, a)
	w.put(b)
	w.toldOf(a, `"10.77.0.9/24"`)
	w.toldOf(b, "10.77.0.10 is in none of the subnets [10.77.1.0/24]")
	c := preferring("red", "c", "n1", "10.77.0.1/24")
	w.put(c)
	w.toldOf(c, "10.77.0.1/24 is not one for pods in the node's subnet")
}

// The router has the addresses that the network gives it, and pods may have the first ones.
func TestRoutersOfPrimaryNetwork(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	own := primary("red", "own", "10.77.0.0/16", "fd77::/64")
	own.Network.Routers = []netip.Addr{netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("fd77::fe")}
	own.Network.Excluded = prefixes("10.77.0.2/31")
	a, b := podIn("red", "a", "n1"), podIn("red", "b", "n1")
	w.put(node("n1", 1), labelled("red", true), own, a)
	w.put(b)
	w.toldOf(a, `["10.77.0.1/16","fd77::1/64"],"mac_address":"0a:58:0a:4d:00:01","gateway_ips":["10.77.0.2","fd77::fe"]`)
	w.toldOf(b, `["10.77.0.4/16","fd77::2/64"]`)
	c := preferring("red", "c", "n1", "10.77.0.2/16")
	w.put(c)
	w.toldOf(c, "10.77.0.2/16 is the address of the network's router")
}

// Addresses that only pods get that ask for them count when a network is full.
func TestReservedAddressesOfFullNetwork(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	own := primary("red", "own", "10.77.0.0/29")
	own.Network.Reserved = prefixes("10.77.0.0/30")
	w.put(node("n1", 1), labelled("red", true), own)
	pods := []*cluster.Pod{preferring("red", "a", "n1", "10.77.0.2/32"), podIn("red", "b", "n1"), podIn("red", "c", "n1"),
		podIn("red", "d", "n1"), podIn("red", "e", "n1"), preferring("red", "f", "n1", "10.77.0.3/32")}
	for _, p := range pods {
		w.put(p)
	}
	for i, want := range []string{"10.77.0.2/29", "10.77.0.4/29", "10.77.0.5/29", "10.77.0.6/29", "no address is free",
		"10.77.0.3/29"} {
		w.toldOf(pods[i], want)
	}
	w.drop(pods[0])
	w.put(node("n9", 9))
	w.toldOf(pods[4], "no address is free")
	w.drop(pods[1])
	w.put(node("n8", 8))
	w.toldOf(pods[4], "10.77.0.4/29")
}
