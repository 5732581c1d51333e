package allocate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// primary is the definition of a primary network of one switch.
func primary(namespace, name string, subnets ...string) *cluster.NetworkDefinition {
	n := &cluster.Network{Name: names.Defined(namespace, name), Topology: cluster.Layer2, Primary: true}
	for _, s := range subnets {
		n.Subnets = append(n.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix(s)})
	}
	if err := n.SetJoin(prefixes("100.66.0.0/24", "fd66::/64")); err != nil {
		panic(err)
	}
	return &cluster.NetworkDefinition{Name: cluster.Name{Namespace: namespace, Name: name}, Network: n}
}

// labelled is a namespace whose pods are in a primary network if so.
func labelled(name string, so bool) *cluster.Namespace {
	n := &cluster.Namespace{Name: name, UID: "uid-" + name}
	if so {
		n.Labels = cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})
	}
	return n
}

// shared is a primary network of the namespaces with a label.
func shared(name, team string) *cluster.UserNetwork {
	selects := cluster.NewLabelSelector(cluster.Requirement{Key: "team", Operator: cluster.In, Values: []string{team}})
	n := primary("", name, "10.77.0.0/24").Network
	n.UserDefined = true
	return &cluster.UserNetwork{Name: cluster.Name{Name: name}, UID: "uid-" + name, Selects: &selects, Network: n,
		Protected: true}
}

func podIn(namespace, name, node string) *cluster.Pod {
	p := pod(name, node)
	p.Name.Namespace = namespace
	p.UID = "uid-" + namespace + "-" + name
	return p
}

// exits checks the addresses of a network's exit on a node, in the node's subnets and on the join switch.
func (w *world) exits(n names.Network, node, out, join string) {
	w.t.Helper()
	gotOut := strings.Trim(fmt.Sprint(w.state.In(n).ExitAddrs[node]), "[]")
	gotJoin := strings.Trim(fmt.Sprint(w.state.In(n).JoinAddrs[node]), "[]")
	if gotOut != out || gotJoin != join {
		w.t.Errorf("the exit of %s on %s has %q and %q, want %q and %q", n, node, gotOut, gotJoin, out, join)
	}
}

// told is what the annotation of a pod says.
func (w *world) told(p *cluster.Pod) string { return w.state.Pods[p.Name].Annotated }

// The pods of a namespace with the label get an interface in its network, and no gateway in the cluster's own. Each
// node with such pods has an exit, as long as it has such pods.
func TestPrimary(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	a, b := podIn("red", "a", "n1"), podIn("red", "b", "n2")
	w.put(node("n1", 1), node("n2", 2), node("n3", 3), labelled("red", true), primary("red", "own", "10.77.0.0/16",
		"fd77::/64"), a, b)
	w.result(5)
	w.exits("red.own", "n1", "10.0.0.3/24 fd01::3/64", "100.66.0.2/24 fd66::2/64")
	w.exits("red.own", "n2", "10.0.1.3/24 fd01:0:0:1::3/64", "100.66.0.3/24 fd66::3/64")
	w.exits("red.own", "n3", "", "")
	for _, want := range []string{`"default":{"ip_addresses":["10.0.0.4/24","fd01::4/64"],` +
		`"mac_address":"0a:58:0a:00:00:04","role":"infrastructure-locked"}`,
		`"red.own/ovn-udn1":{"ip_addresses":["10.77.0.2/16","fd77::2/64"],` +
			`"mac_address":"0a:58:0a:4d:00:02","gateway_ips":["10.77.0.1","fd77::1"],"role":"primary"}`} {
		if !strings.Contains(w.told(a), want) {
			t.Errorf("pod a is told %s, want %s in it", w.told(a), want)
		}
	}
	again := w.restarted()
	again.result(0)
	again.exits("red.own", "n1", "10.0.0.3/24 fd01::3/64", "100.66.0.2/24 fd66::2/64")
	w.drop(b)
	w.result(1)
	w.exits("red.own", "n2", "", "")
	if got := w.state.Nodes["n2"].JoinAnnotated; got != "" {
		t.Errorf("node n2 has %s, want nothing left of its exit", got)
	}
	w.drop(primary("red", "own"))
	w.result(2, "no primary network")
	w.exits("red.own", "n1", "", "")
	told := w.told(a)
	if strings.Count(told, `"waiting":"the namespace has the label`) != 2 || len(w.state.In("red.own").PodNetworks) > 0 {
		t.Errorf("pod a is told %s, want it to wait", told)
	}
	w.put(primary("red", "own", "10.77.0.0/16", "fd77::/64")) // it gets back what it had
	if got := w.told(a); strings.Contains(got, "waiting") || !strings.Contains(got, "10.77.0.2/16") {
		t.Errorf("pod a is told %s, and was told %s", got, told)
	}
}

// A pod that opens ports of its interface in the cluster's own network has routes there, as long as it opens any.
func TestRoutesOfOpenPorts(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	opener, other := podIn("red", "a", "n1"), podIn("plain", "b", "n1")
	opener.Opens = cluster.NewOpenPorts([]cluster.OpenPort{{Protocol: "tcp", Number: 80}})
	other.Opens = opener.Opens
	w.put(node("n1", 1), labelled("red", true), labelled("plain", false), primary("red", "own", "10.77.0.0/16",
		"fd77::/64"), opener, other)
	const routes = `"routes":[{"dest":"10.0.0.0/16","nextHop":"10.0.0.1"},{"dest":"fd01::/48","nextHop":"fd01::1"}]`
	has := func(p *cluster.Pod, want bool) {
		t.Helper()
		if got := w.told(p); strings.Contains(got, routes) != want {
			t.Errorf("pod %s is told %s, want routes %v", p.Name, got, want)
		}
	}
	has(opener, true)
	has(other, false)
	again := w.restarted()
	again.result(0)
	closed := *w.state.Pods[opener.Name]
	closed.Opens = cluster.OpenPorts{}
	w.put(&closed)
	has(opener, false)
}

// Pods wait for what decides about their primary network. A namespace that gets the label later locks its pods.
func TestPodsWaitForTheirPrimaryNetwork(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	a := podIn("red", "a", "n1")
	w.put(node("n1", 1), labelled("red", true), a)
	w.result(2, "the namespace has the label k8s.ovn.org/primary-user-defined-network, but no primary network")
	second := primary("red", "another", "10.78.0.0/16")
	second.Created = 9
	w.put(primary("red", "own", "10.77.0.0/16"), second) // the older has the pods
	w.result(2)
	w.drop(second)
	w.result(0)
	if got := w.told(a); strings.Contains(got, "waiting") || !strings.Contains(got, "10.77.0.2/16") {
		t.Errorf("pod a is told %s", got)
	}
	w.put(labelled("red", false))
	w.result(2)
	if got := w.told(a); strings.Contains(got, "10.77") || !strings.Contains(got, `"gateway_ips":["10.0.0.1"]`) {
		t.Errorf("pod a is told %s, want it to be as others", got)
	}
	w.drop(labelled("red", false)) // as it is when the pod is seen first
	w.result(1)
	if got := w.told(a); !strings.Contains(got, "the Namespace is not known yet") {
		t.Errorf("pod a is told %s, want it to wait for the Namespace", got)
	}
	w.put(labelled("red", true))
	if got := w.told(a); !strings.Contains(got, "10.77.0.3/16") { // the other was freed lately
		t.Errorf("pod a is told %s", got)
	}
	greedy := podIn("red", "b", "n1")
	greedy.Attachments = []cluster.Attachment{{Network: "red.own", Interface: "net1"}}
	w.put(greedy)
	w.result(1, "it is a primary network: pods of a namespace with the label")
	greedy = podIn("red", "c", "n1")
	greedy.Attachments = []cluster.Attachment{{Network: "red.own", Interface: names.PrimaryInterface}}
	w.put(greedy)
	w.result(1, "it is a primary network: pods of a namespace with the label")
	if got := w.state.In("red.own").PodNetworks; len(got) != 1+1 { // a, and b besides what it asks for
		t.Errorf("%v, want what a and b have", got)
	}
}

// Pods of two namespaces are in a network that both share. One that is not selected any more loses it. Its pods have
// the same addresses again once it is back.
func TestSharedPrimary(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	member := func(name, team string) *cluster.Namespace {
		n := labelled(name, true)
		n.Labels = cluster.NewLabels(map[string]string{names.PrimaryLabel: "", "team": team})
		return n
	}
	a, b := podIn("red", "a", "n1"), podIn("blue", "b", "n1")
	w.put(node("n1", 1), member("red", "x"), member("blue", "x"), a, b)
	w.put(shared("team", "x"))
	w.exits(".team", "n1", "10.0.0.5/24", "100.66.0.2/24")
	const key = `"red.team/ovn-udn1":{"ip_addresses":["10.77.0.3/24"]`
	told := w.told(a)
	other := `"blue.team/ovn-udn1":{"ip_addresses":["10.77.0.2/24"]`
	if !strings.Contains(told, key) || !strings.Contains(w.told(b), other) {
		t.Errorf("pods are told %s and %s", told, w.told(b))
	}
	w.put(member("red", "y"))
	if got := w.told(a); !strings.Contains(got, "but no primary network") || len(w.state.In(".team").PodNetworks) != 1 {
		t.Errorf("pod a is told %s", got)
	}
	w.exits(".team", "n1", "10.0.0.5/24", "100.66.0.2/24") // the other needs it
	w.put(member("red", "x"))
	if got := w.told(a); got != told {
		t.Errorf("pod a is told %s, and was told %s", got, told)
	}
	w.drop(shared("team", "x"))
	w.exits(".team", "n1", "", "")
}

// A network that can't be used is named.
func TestPrimaryThatOverlaps(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), labelled("red", true), primary("red", "own", "10.0.7.0/24"), podIn("red", "a", "n1"))
	w.result(2, "red/own can't be used: subnets: 10.0.7.0/24 overlaps 10.0.0.0/16")
	w.exits("red.own", "n1", "", "")
	w.put(primary("red", "own", "10.77.0.0/24", "fd77::/64"))
	w.result(1, "the cluster's own pods have no IPv6")
}

// A node's claim of an exit is honoured before a pod's claim of the same address, and a wrong one is written anew.
func TestClaimsOfExits(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	n := node("n1", 1)
	n.JoinAnnotated = `{"red.own":{"ipv4":"100.66.0.9/24"},"red.own/exit":{"ipv4":"10.0.0.9/24"}}`
	thief := annotated("thief", "n1", true, "10.0.0.9/24")
	w.put(n, labelled("red", true), primary("red", "own", "10.77.0.0/16"), podIn("red", "a", "n1"), thief)
	w.exits("red.own", "n1", "10.0.0.9/24", "100.66.0.9/24")
	w.result(3, "10.0.0.9/24 is already the address of exit of red.own")
	w.address("thief", "10.0.0.3")
	wrong := *w.state.Nodes["n1"]
	wrong.JoinAnnotated = `{"red.own/exit":{"ipv4":"10.0.7.7/24"},"red.own":{"ipv4":"100.66.0.9/24"}}`
	w.put(&wrong)
	if got := w.state.Nodes["n1"].JoinAnnotated; !strings.Contains(got, "10.0.0.9/24") {
		t.Errorf("node n1 has %s, want its exit written again", got)
	}
}

// Where a node's subnet is full, an exit waits for an address, and gets the next that is free.
func TestExitWaits(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/29")
	w.put(node("n1", 1), labelled("red", true), podIn("red", "a", "n1"))
	w.put(pod("x", "n1"), pod("y", "n1"))
	w.put(pod("z", "n1"))
	w.put(primary("red", "own", "10.77.0.0/16"))
	w.result(2, "pods of network red.own do not reach the outside from this node until one is")
	w.exits("red.own", "n1", "", "100.66.0.2/24")
	w.drop(pod("y", "n1"), pod("x", "n1"), pod("z", "n1"))
	if w.state.In("red.own").ExitAddrs["n1"] == nil {
		t.Error("the exit still waits")
	}
}

// TestPrimaryProperties has namespaces, networks, nodes and pods come and go. No address of a node's subnet is given
// twice. A ledger that is rebuilt from the annotations grants the same and writes nothing. At the end nothing is left.
func TestPrimaryProperties(t *testing.T) {
	for seed := range uint64(12) {
		w := newWorld(t, "10.0.0.0/16/27")
		r := rand.New(rand.NewPCG(seed, 58))
		for range 150 {
			w.put(randomPrimary(r))
			if r.IntN(3) == 0 {
				w.drop(randomPrimary(r))
			}
			w.checkExits()
		}
		again := w.restarted()
		if len(again.last.Patches) > 0 {
			t.Errorf("seed %d: a restart writes %v", seed, again.last.Patches)
		}
		for n := range w.state.Networks {
			if a, b := w.state.In(n).ExitAddrs, again.state.In(n).ExitAddrs; fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("seed %d: exits of %s: %v, and after a restart %v", seed, n, a, b)
			}
		}
		for i := range 4 {
			w.drop(node(fmt.Sprint("n", i), 1))
		}
		for _, b := range w.ledger.books {
			if len(b.exits)+len(b.join.number)+len(b.nodes)+len(b.waitingExits) > 0 {
				t.Errorf("seed %d: %v, %v, %v: want nothing without nodes", seed, b.exits, b.join.number, b.nodes)
			}
		}
	}
}

func randomPrimary(r *rand.Rand) cluster.Object {
	ns := fmt.Sprint("ns", r.IntN(3))
	switch r.IntN(8) {
	case 0:
		return node(fmt.Sprint("n", r.IntN(3)), 1)
	case 1, 2:
		n := labelled(ns, r.IntN(4) > 0)
		if r.IntN(2) > 0 {
			n.Labels = cluster.NewLabels(map[string]string{names.PrimaryLabel: "", "team": fmt.Sprint(r.IntN(2))})
		}
		return n
	case 3, 4:
		return primary(ns, fmt.Sprint("d", r.IntN(8)/7), []string{"10.77.0.0/24", "10.77.0.0/28"}[r.IntN(2)])
	}
	if r.IntN(4) == 0 {
		return shared(fmt.Sprint("d", r.IntN(8)/7), fmt.Sprint(r.IntN(2)))
	}
	p := podIn(ns, fmt.Sprint("p", r.IntN(6)), fmt.Sprint("n", r.IntN(3)))
	p.Finished = r.IntN(6) == 0
	return p
}

// checkExits checks that exits are where they are needed, and that nobody shares an address.
func (w *world) checkExits() {
	w.t.Helper()
	taken := map[netip.Addr]string{}
	take := func(who string, ips []netip.Prefix) {
		for _, a := range ipnet.Addrs(ips) {
			if taken[a] != "" {
				w.t.Fatalf("%s and %s have %s", taken[a], who, a)
			}
			taken[a] = who
		}
	}
	for p, net := range w.state.PodNetworks {
		take(p.Pod.String(), net.IPs)
	}
	for name, n := range w.state.Networks {
		for node := range w.state.Nodes {
			wanted := n.Primary && slices.ContainsFunc(w.state.PodsOn(node), func(pod cluster.Name) bool {
				in, _ := w.state.Primary(pod.Namespace)
				return in == name && w.state.Pods[pod].WantsNetwork()
			})
			has := w.state.In(name).ExitAddrs[node]
			take(fmt.Sprintf("the exit of %s", name), has)
			full := w.ledger.waitingExits[exit{name, node}]
			if wanted != (len(has) > 0) && (!full || !wanted) {
				w.t.Fatalf("exit of %s on %s: %v, wanted %v", name, node, has, wanted)
			}
			told := w.state.Nodes[node].JoinAnnotated
			if _, ok, _ := annotation.ReadGatewayJoins(told).In(name.ExitEntry()); ok != (len(has) > 0) {
				w.t.Fatalf("node %s has %s, with exit %v", node, told, has)
			}
		}
	}
}

// A pod keeps the addresses and the MAC that it was told, whatever it asks for later, also when a master starts anew.
func TestPodsKeepWhatTheyWereTold(t *testing.T) {
	chosen := cluster.Asked{IPv4: netip.MustParsePrefix("10.77.0.9/16"), MAC: ipnet.MAC{2, 5: 9}}
	other := cluster.Asked{IPv4: netip.MustParsePrefix("10.77.0.8/16"), MAC: ipnet.MAC{2, 5: 8}}
	for name, c := range map[string]struct{ first, then cluster.Asked }{
		"another": {chosen, other}, "no more": {chosen, cluster.Asked{}}, "late": {cluster.Asked{}, chosen},
	} {
		w := newWorld(t, "10.0.0.0/16/24")
		a := podIn("red", "a", "n1")
		a.Preferred = c.first
		w.put(node("n1", 1), labelled("red", true), primary("red", "own", "10.77.0.0/16"), a)
		before := w.told(a)
		if strings.Contains(before, `"10.77.0.9/16"],"mac_address":"02:00:00:00:00:09"`) != (c.first == chosen) {
			t.Fatalf("%s: the pod is told %s", name, before)
		}
		changed := *w.state.Pods[a.Name]
		changed.Preferred = c.then
		w.put(&changed)
		if now := w.told(a); now != before {
			t.Errorf("%s: the pod is told %s, want %s", name, now, before)
		}
		w = w.restarted()
		w.result(0)
		if now := w.told(a); now != before {
			t.Errorf("%s: after a restart the pod is told %s, want %s", name, now, before)
		}
	}
}
