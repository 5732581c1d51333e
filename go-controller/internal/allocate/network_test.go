package allocate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// lan is the definition of a network of one switch with these subnets.
func lan(excluded string, subnets ...string) *cluster.NetworkDefinition {
	n := &cluster.Network{Name: "default.lan", Topology: cluster.Layer2}
	for _, s := range subnets {
		n.Subnets = append(n.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix(s)})
	}
	if excluded != "" {
		n.Excluded = prefixes(strings.Split(excluded, ",")...)
	}
	return &cluster.NetworkDefinition{Name: podName("lan"), Network: n}
}

// asking is a pod that asks for an interface in the network lan, with an address unless ip is "".
func asking(name, node, ip string) *cluster.Pod {
	p := pod(name, node)
	a := cluster.Attachment{Network: "default.lan", Interface: "net1"}
	if ip != "" && !strings.Contains(ip, "/") {
		ip += "/32" // its full length: in whatever subnet
	}
	if ip != "" {
		a.Asked.IPv4 = netip.MustParsePrefix(ip)
	}
	p.Attachments = []cluster.Attachment{a}
	return p
}

// inLAN checks what pods hold in the network lan, and what their annotations say of it.
func (w *world) inLAN(want map[string]string) {
	w.t.Helper()
	for name, addresses := range want {
		held := w.state.In("default.lan").PodNetworks[cluster.PodPort{Pod: podName(name), Interface: "net1"}]
		got := strings.Trim(fmt.Sprint(ipnet.Addrs(held.IPs)), "[]")
		told, ok, err := annotation.PodNetworkIn(w.state.Pods[podName(name)].Annotated, "default.lan/net1")
		if got != addresses || err != nil || ok != (got != "") || !cluster.SamePodNetwork(told, held) && got != "" {
			w.t.Errorf("pod %s holds %q and is told %+v, %v; want %q", name, got, told, err, addresses)
		}
	}
}

// waits checks what the annotation of a pod says of why it has no interface in the network lan.
func (w *world) waits(name, want string) {
	w.t.Helper()
	if _, err := annotation.PodAttachments(w.state.Pods[podName(name)].Annotated); err == nil ||
		!strings.Contains(err.Error(), want) {
		w.t.Errorf("pod %s: %v, want %q", name, err, want)
	}
}

// A pod waits for a network that is not there. It gets its interface when the network comes, and loses it when the
// network goes; its address in the cluster's own network stays.
func TestNetworkComesAndGoes(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), node("n2", 2), asking("a", "n1", ""), asking("b", "n2", ""))
	w.result(4, "there is no NetworkAttachmentDefinition default/lan", "there is no NetworkAttachmentDefinition")
	w.waits("a", "there is no NetworkAttachmentDefinition default/lan")
	w.put(lan("", "10.99.0.0/24", "fd99::/64"))
	w.result(2)
	w.inLAN(map[string]string{"a": "10.99.0.1 fd99::1", "b": "10.99.0.2 fd99::2"})
	status := w.last.Patches[0].Annotations[annotation.NetworkStatus]
	if !strings.Contains(status, `{"name":"default/lan","interface":"net1","ips":["10.99.0.1","fd99::1"],`+
		`"mac":"0a:58:0a:63:00:01","dns":{}}`) || !strings.Contains(status, `"interface":"eth0","ips":["10.0.0.3"]`) {
		t.Errorf("network status %s", status)
	}
	w.drop(lan(""))
	w.result(2, "there is no NetworkAttachmentDefinition", "there is no NetworkAttachmentDefinition")
	w.waits("b", "there is no NetworkAttachmentDefinition default/lan")
	w.address("b", "10.0.1.3")
	w.put(lan("", "10.98.0.0/24"))
	w.inLAN(map[string]string{"a": "10.98.0.1", "b": "10.98.0.2"})
	w.put(lan("", "10.98.0.0/23")) // other subnets are another network
	w.inLAN(map[string]string{"a": "10.98.0.1", "b": "10.98.0.2"})
	again := w.restarted()
	again.result(0)
	again.inLAN(map[string]string{"a": "10.98.0.1", "b": "10.98.0.2"})
	foreign := &cluster.NetworkDefinition{Name: podName("lan"), Foreign: true}
	w.put(foreign)
	if now := w.state.Pods[podName("a")].Annotated; strings.Contains(now, "lan") {
		t.Errorf("annotation %s, want nothing of another plugin's network", now)
	}
}

// What is excluded is given to nobody, and what a pod asks for to no other.
func TestAskedAddresses(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), lan("10.99.0.0/30,10.99.0.6/32", "10.99.0.0/29"))
	w.put(asking("a", "n1", "10.99.0.5/29"), asking("b", "n1", ""))
	w.inLAN(map[string]string{"a": "10.99.0.5", "b": "10.99.0.4"})
	w.put(asking("c", "n1", ""))
	w.result(1, "NetworkSubnetExhausted: default.lan: no address is free in subnet 10.99.0.0/29 of the network")
	w.put(asking("d", "n1", "10.99.0.5"))
	w.result(1, "10.99.0.5/29 is already the address of Pod default/a: the pod waits for it")
	w.put(asking("e", "n1", "10.99.0.2"))
	w.result(1, "10.99.0.2/29 is in 10.99.0.0/30, which the network excludes")
	w.put(asking("f", "n1", "10.99.0.7"))
	w.result(1, "10.99.0.7/29 is not one for pods")
	w.put(asking("g", "n1", "10.99.0.5/24"))
	w.result(1, "10.99.0.5/24 is not in the network's subnet 10.99.0.0/29")
	w.waits("g", "10.99.0.5/24 is not in the network's subnet 10.99.0.0/29")
	w.drop(asking("c", "n1", ""))
	w.drop(asking("a", "n1", ""))
	w.inLAN(map[string]string{"d": "10.99.0.5"}) // after a minute: see world.batch
}

// No two pods of a network have one MAC.
func TestAskedMAC(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), lan("", "10.99.0.0/24"))
	with := func(name string) *cluster.Pod {
		p := asking(name, "n1", "")
		p.Attachments[0].Asked.MAC = ipnet.MAC{2, 5: 7}
		return p
	}
	w.put(with("a"))
	w.put(with("b"))
	w.result(1, "02:00:00:00:00:07 is already the MAC of Pod default/a")
	w.inLAN(map[string]string{"a": "10.99.0.1", "b": ""})
	w.drop(with("a"))
	w.put(node("n9", 9))
	w.inLAN(map[string]string{"b": "10.99.0.2"})
}

// A pod's author may write entries into its annotation. Those that the master did not write are removed.
func TestForgedAttachments(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), pod("a", "n1"), lan("", "10.99.0.0/24"), asking("b", "n1", ""))
	for _, name := range []string{"a", "b"} {
		good := w.state.Pods[podName(name)]
		forged := *good
		forged.Annotated = strings.Replace(good.Annotated, "{", `{"bank.vault/net7":{"ip_addresses":["10.1.0.1/24"],`+
			`"mac_address":"02:00:00:00:00:01"},`, 1)
		w.put(&forged)
		w.result(1)
		if now := w.state.Pods[podName(name)].Annotated; now != good.Annotated {
			t.Errorf("%s ends as %s, want %s", name, now, good.Annotated)
		}
	}
}

// A definition that is deleted and made again takes nothing from pods: they get back what they had.
func TestNetworkMadeAgain(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), lan("", "10.99.0.0/24"), asking("a", "n1", ""), asking("b", "n1", ""))
	w.drop(asking("a", "n1", ""))
	w.inLAN(map[string]string{"b": "10.99.0.2"})
	w.drop(lan(""))
	w.waits("b", "there is no NetworkAttachmentDefinition default/lan")
	again := w.restarted() // a master that has never seen the network
	again.result(0, "there is no NetworkAttachmentDefinition")
	for _, world := range []*world{w, again} {
		world.put(lan("", "10.99.0.0/24"), asking("c", "n1", ""))
		world.inLAN(map[string]string{"b": "10.99.0.2", "c": "10.99.0.1"})
	}
}

// In a network without subnets pods have what they ask for, and nobody has another's.
func TestNetworkWithoutSubnets(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), lan(""), asking("a", "n1", "10.1.0.5/24"), asking("z", "n1", ""))
	w.inLAN(map[string]string{"a": "10.1.0.5"})
	held := func(name string) annotation.PodNetwork {
		return w.state.In("default.lan").PodNetworks[cluster.PodPort{Pod: podName(name), Interface: "net1"}]
	}
	a, z := held("a").MAC, held("z").MAC
	if a == z || a == ipnet.MACFor(ipnet.Addrs(held("a").IPs)) || z == (ipnet.MAC{}) {
		t.Errorf("MACs %s and %s: want two that no address leads to", a, z)
	}
	w.put(asking("b", "n1", "10.1.0.5/16"))
	w.result(1, "10.1.0.5 is already the address of Pod default/a")
	w.put(asking("c", "n1", "10.1.0.6"))
	w.result(1, "the network has no subnets, want an address with the length of one such as 10.1.0.6/24")
	w.drop(asking("a", "n1", ""))
	w.inLAN(map[string]string{"b": "10.1.0.5"}) // at once: nothing else would tell b
}

// IPv6 needs an MTU of 1280 bytes. Where a definition has no subnets, only the pods tell whether it serves IPv6.
func TestNetworkTooNarrowForIPv6(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	d := lan("")
	d.Network.MTU = 1279
	six := asking("six", "n1", "")
	six.Attachments[0].Asked.IPv6 = netip.MustParsePrefix("fd99::5/64")
	w.put(node("n1", 1), d, asking("four", "n1", "10.1.0.5/24"), six)
	w.result(3, "fd99::5/64: the mtu of the network is 1279, and IPv6 needs 1280 bytes")
	w.inLAN(map[string]string{"four": "10.1.0.5", "six": ""})
	d = lan("")
	d.Network.MTU = 1280
	w.put(d)
	w.inLAN(map[string]string{"four": "10.1.0.5", "six": "fd99::5"})
}

// A node has subnets in a network only when one of its pods is in it.
func TestSubnetsWhereTheyAreAskedFor(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	d := &cluster.NetworkDefinition{Name: podName("lan"), Network: &cluster.Network{Name: "default.lan",
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/16"), NodeLength: 24}}}}
	w.put(node("n1", 1), node("n2", 2), d)
	has := func(want string) {
		t.Helper()
		if got := fmt.Sprint(w.state.In("default.lan").NodeSubnets); got != want {
			t.Errorf("subnets %s, want %s", got, want)
		}
	}
	has("map[]")
	w.put(asking("a", "n2", ""))
	has("map[n2:[10.99.0.0/24]]")
	w.inLAN(map[string]string{"a": "10.99.0.3"})
	w.put(node("n3", 3))
	has("map[n2:[10.99.0.0/24]]")
	w.restarted().inLAN(map[string]string{"a": "10.99.0.3"})
}

// A node that none of the network's pods is on any more gives its subnet back when another node waits for one.
func TestSubnetsOfIdleNodes(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.pause = 1
	d := &cluster.NetworkDefinition{Name: podName("lan"), Network: &cluster.Network{Name: "default.lan",
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/23"), NodeLength: 24}}}}
	w.put(node("n1", 1), node("n2", 2), node("n3", 3), d, asking("a", "n1", ""), asking("b", "n2", ""))
	has := func(w *world, want string) {
		t.Helper()
		if got := fmt.Sprint(w.state.In("default.lan").NodeSubnets); got != want {
			t.Errorf("subnets %s, want %s", got, want)
		}
	}
	w.drop(asking("a", "n1", ""))
	has(w, "map[n1:[10.99.0.0/24] n2:[10.99.1.0/24]]") // nobody needs it
	lacking := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(w.state.In("default.lan").Lacking)); !slices.Equal(got, want) {
			t.Errorf("nodes without a subnet are %v, want %v", got, want)
		}
	}
	lacking()
	w.put(asking("c", "n3", ""))
	has(w, "map[n2:[10.99.1.0/24]]")
	lacking("n3")
	w.clock += freedFor // the usual time must pass
	w.put(node("n9", 9))
	lacking()
	has(w, "map[n2:[10.99.1.0/24] n3:[10.99.0.0/24]]")
	w.inLAN(map[string]string{"b": "10.99.1.3", "c": "10.99.0.3"})
	w.put(asking("e", "n1", "")) // n1 waits, and n2 then gives back
	w.drop(asking("b", "n2", ""))
	has(w, "map[n3:[10.99.0.0/24]]")
	w.clock += freedFor
	w.put(node("n8", 8))
	w.inLAN(map[string]string{"c": "10.99.0.3", "e": "10.99.1.3"})
	again := w.restarted()
	again.result(0)
	again.inLAN(map[string]string{"c": "10.99.0.3", "e": "10.99.1.3"})
	w.put(asking("f", "n2", "")) // n2 waits, and then nobody on it does
	w.result(1, "Node n2: NetworkSubnetExhausted: default.lan: no subnet for the node is free in the network's subnets")
	lacking("n2")
	if got := w.told(asking("f", "n2", "")); !strings.Contains(got, "no subnet for Node n2 is free") {
		t.Errorf("pod f is told %s", got)
	}
	w.drop(asking("f", "n2", ""))
	lacking()
	w.drop(asking("c", "n3", ""))
	has(w, "map[n1:[10.99.1.0/24] n3:[10.99.0.0/24]]")
	stale := node("n2", 7, "10.0.1.0/24") // made anew from an old copy; after a restart it might be believed first
	stale.UID = "uid-anew"
	stale.Annotated = strings.Replace(stale.Annotated, "{", `{"default.lan":"10.99.0.0/24",`, 1)
	w.put(stale)
	w.result(1, "10.99.0.0/24 overlaps 10.99.0.0/24 of Node n3: new subnets are given out")
	if got := w.state.Nodes["n2"].Annotated; got != `{"default":["10.0.1.0/24"]}` {
		t.Errorf("node n2 says %s", got)
	}
}

// A pod that waits for an address of its node's subnet is told when the node has no subnet any more.
func TestWaitsForASubnetInstead(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	d := &cluster.NetworkDefinition{Name: podName("lan"), Network: &cluster.Network{Name: "default.lan",
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/24"), NodeLength: 24}}}}
	w.put(node("n1", 1), node("n2", 2), d, asking("a", "n1", "10.77.0.9"))
	w.waits("a", "10.77.0.9 is in none of the subnets")
	w.drop(node("n1", 1))
	w.clock += freedFor
	w.put(asking("b", "n2", ""))
	w.inLAN(map[string]string{"b": "10.99.0.3"})
	anew := node("n1", 3)
	anew.UID = "uid-anew"
	w.put(anew)
	w.waits("a", "no subnet for Node n1 is free")
	w.restarted().result(0, "no subnet for the node is free")
}

// What a running pod asks for later is no claim on what another has.
func TestAskedLater(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	young := asking("young", "n1", "")
	young.Created, young.Attachments[0].Asked.MAC = 9, ipnet.MAC{2, 5: 7}
	w.put(node("n1", 1), lan("", "10.99.0.0/24"), asking("old", "n1", ""), young)
	thief := *w.state.Pods[podName("old")]
	thief.Attachments = []cluster.Attachment{{Network: "default.lan", Interface: "net1",
		Asked: cluster.Asked{MAC: ipnet.MAC{2, 5: 7}}}}
	w.put(&thief)
	again := w.restarted()
	held := again.state.In("default.lan").PodNetworks[cluster.PodPort{Pod: podName("young"), Interface: "net1"}]
	if held.MAC != (ipnet.MAC{2, 5: 7}) {
		t.Errorf("young has %s after a restart, want its MAC", held.MAC)
	}
}

// Entries of a network that is gone go from a Node, also those of a patch that was under way when the network went, and
// those that an earlier master left. Entries of a definition that is refused stay, and those of another form.
func TestEntriesOfNetworksThatAreGone(t *testing.T) {
	const newer = `"newer":{"field":1},"red.own/newer":{"field":1},"red.refused":["10.78.0.0/24"]`
	for name, stray := range map[string]func(*cluster.Node){
		"subnets": func(n *cluster.Node) {
			n.Annotated = `{"default":["10.0.0.0/24"],"red.own":["10.77.0.0/24"],` + newer + `}`
		},
		"router and exit": func(n *cluster.Node) {
			n.JoinAnnotated = `{"red.own":{"ipv4":"100.65.0.2/16"},"red.own/exit":{"ipv4":"10.0.0.9/24"},` + newer + `}`
		},
	} {
		w := newWorld(t, "10.0.0.0/16/24")
		refused := &cluster.UserNetwork{Name: cluster.Name{Namespace: "red", Name: "refused"}}
		w.put(node("n1", 1), node("n2", 2), refused)
		late := *w.state.Nodes["n1"]
		stray(&late)
		check := func(w *world, when string) {
			t.Helper()
			n := w.state.Nodes["n1"]
			text := n.Annotated + n.JoinAnnotated
			if strings.Contains(text, "10.77.") || strings.Contains(text, `"red.own/exit"`) || !strings.Contains(text, newer) {
				t.Errorf("%s, %s: annotations %s, want nothing of the network that is gone, and the rest", name, when, text)
			}
		}
		w.put(&late)
		check(w, "under way")
		w.state.Nodes["n1"].Annotated, w.state.Nodes["n1"].JoinAnnotated = late.Annotated, late.JoinAnnotated
		again := w.restarted()
		for _, p := range again.last.Patches {
			again.update([]cluster.Event{again.patched(p)})
		}
		check(again, "from an earlier master")
	}
}

// A network may have become another while no master ran, or while a patch was under way: what a node holds nothing of
// any more goes from its annotations.
func TestEntriesOfAnotherNetwork(t *testing.T) {
	layer3 := lan("")
	layer3.Network = &cluster.Network{Name: "default.lan",
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/16"), NodeLength: 24}}}
	for name, d := range map[string]*cluster.NetworkDefinition{
		"one switch for all nodes": lan("", "10.99.0.0/24"), "other subnets, and nobody asks": layer3,
	} {
		w := newWorld(t, "10.0.0.0/16/24")
		n := node("n1", 1)
		n.Annotated = `{"default":["10.0.0.0/24"],"default.lan":["10.50.0.0/24"]}`
		n.JoinAnnotated = `{"default.lan":{"ipv4":"100.65.0.2/16"},"default.lan/exit":{"ipv4":"10.0.0.9/24"}}`
		w.put(n, d)
		if now := w.state.Nodes["n1"]; strings.Contains(now.Annotated+now.JoinAnnotated, "lan") {
			t.Errorf("%s: annotations %s %s, want nothing of the network", name, now.Annotated, now.JoinAnnotated)
		}
	}
}
