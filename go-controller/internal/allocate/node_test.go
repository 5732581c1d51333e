package allocate

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

func TestTwoNodesClaimOneSubnet(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("young", 2, "10.0.5.0/24"), node("old", 1, "10.0.5.0/24"), pod("a", "young"),
		annotated("b", "old", true, "10.0.5.9/24"))
	w.result(2,
		"Node young: NodeSubnetRefused: annotation k8s.ovn.org/node-subnets: 10.0.5.0/24 overlaps 10.0.5.0/24 of Node "+
			"old: new subnets are given out")
	w.subnets("old", "10.0.5.0/24")
	w.subnets("young", "10.0.0.0/24")
	w.address("a", "10.0.0.3")
	w.address("b", "10.0.5.9")
	w.restarted().result(0)
}

// The annotation of a node that got nothing is removed: after a restart it would be believed. A node that claims
// everything gets what is left.
func TestRefusedClaimsAreNotHeardAgain(t *testing.T) {
	w := newWorld(t, "10.0.0.0/24/26")
	for i := range 4 {
		w.put(node(fmt.Sprint("n", i), int64(10+i)))
	}
	w.put(node("older", 1, "10.0.0.64/26"))
	w.result(1, "10.0.0.64/26 overlaps 10.0.0.64/26 of Node n1", "Node older: ClusterSubnetExhausted")
	again := w.restarted()
	again.result(0, "Node older: ClusterSubnetExhausted")
	again.subnets("n1", "10.0.0.64/26")
	w.drop(node("older", 1), node("n2", 12))
	w.state.Nodes["greedy"] = node("greedy", 0, "10.0.0.0/24")
	again = w.restarted()
	again.result(1, "10.0.0.0/24 overlaps 10.0.0.")
	again.subnets("greedy", "10.0.0.128/26")
	again.subnets("n1", "10.0.0.64/26")
}

func TestNodeAnnotations(t *testing.T) {
	for what, c := range map[string]struct {
		annotated []string
		subnets   string
		problem   string
	}{
		"right":              {[]string{"10.0.9.0/24", "fd01:0:0:9::/64"}, "10.0.9.0/24 fd01:0:0:9::/64", ""},
		"of an older length": {[]string{"10.0.8.0/23", "fd01:0:0:9::/64"}, "10.0.8.0/23 fd01:0:0:9::/64", ""},
		"one family": {[]string{"10.0.9.0/24"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"want one subnet of each of the 2 address families of the cluster subnets [10.0.0.0/16/24 fd01::/48/64]"},
		"elsewhere": {[]string{"10.9.0.0/24", "fd01:0:0:9::/64"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"10.9.0.0/24 is not in the cluster subnets"},
		"wider than the range": {[]string{"10.0.0.0/8", "fd01:0:0:9::/64"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"10.0.0.0/8 is not in the cluster subnets"},
		"around another's": {[]string{"10.0.0.0/20", "fd01:0:0:9::/64"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"10.0.0.0/20 overlaps 10.0.0.0/24 of Node first"},
		"inside another's": {[]string{"10.0.0.128/25", "fd01:0:0:9::/64"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"10.0.0.128/25 overlaps 10.0.0.0/24 of Node first"},
		"no room": {[]string{"10.0.9.0/30", "fd01:0:0:9::/64"}, "10.0.1.0/24 fd01:0:0:1::/64",
			"10.0.9.0/30 has no room for pods"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
			w.put(node("first", 1))
			w.put(node("n", 2, c.annotated...))
			if c.problem == "" {
				w.result(0)
			} else {
				w.result(1, c.problem)
			}
			w.subnets("n", c.subnets)
		})
	}
}

func TestNodeSubnetsRunOutAndComeBack(t *testing.T) {
	w := newWorld(t, "10.0.0.0/24/26")
	for i := range 4 {
		w.put(node(fmt.Sprint("n", i), int64(i)))
	}
	w.put(node("late", 9), pod("p", "late"))
	w.result(0,
		"Node late: ClusterSubnetExhausted: no subnet for the node is free in the cluster subnets [10.0.0.0/24/26]: the "+
			"node waits for one; widen --cluster-subnets or remove nodes")
	w.put(node("later", 10))
	w.result(0, "Node later: ClusterSubnetExhausted")
	w.drop(node("n2", 2))
	w.result(2)
	w.subnets("late", "10.0.0.128/26")
	w.address("p", "10.0.0.131")
	again := node("later", 11)
	again.UID = "another"
	w.put(again)
	w.result(0, "Node later: ClusterSubnetExhausted") // another node: told again
	w.drop(again)
	w.drop(node("n0", 0))
	w.result(0)
}

// A node that is made anew keeps its subnets as long as they are free, and its pods keep their addresses: when it
// returns at once, after a while, and when the master did not see it.
func TestNodeMadeAnew(t *testing.T) {
	anew := node("n2", 9)
	anew.UID = "another"
	start := func(t *testing.T) *world {
		w := newWorld(t, "10.0.0.0/22/24")
		w.put(node("n1", 1), node("n2", 2), node("n3", 3), node("n4", 4), node("waiting", 5), pod("p", "n2"))
		w.address("p", "10.0.1.3")
		return w
	}
	t.Run("at once", func(t *testing.T) {
		w := start(t)
		w.put(anew)
		w.result(1)
		w.subnets("n2", "10.0.1.0/24")
		w.address("p", "10.0.1.3")
		if len(w.last.Changes) != 0 {
			t.Errorf("changes of what is held: %v, want none", w.last.Changes)
		}
	})
	t.Run("with other subnets", func(t *testing.T) {
		w := start(t)
		w.drop(node("waiting", 5))
		w.drop(node("n3", 3))
		other := *anew
		other.Annotated = annotation.MarshalNodeSubnets(prefixes("10.0.2.0/24"))
		w.put(&other)
		w.result(1, "10.0.1.3/24 is not in the node's subnet 10.0.2.0/24")
		w.subnets("n2", "10.0.2.0/24")
		w.address("p", "10.0.2.3")
	})
	t.Run("later", func(t *testing.T) {
		w := start(t)
		w.drop(node("waiting", 5))
		w.drop(node("n2", 2), node("n1", 1))
		w.address("p", "")
		w.put(node("new", 7), anew)
		w.subnets("n2", "10.0.1.0/24")
		w.subnets("new", "10.0.0.0/24")
		w.address("p", "10.0.1.3")
	})
	t.Run("taken meanwhile", func(t *testing.T) {
		w := start(t)
		p := w.state.Pods[podName("p")]
		w.drop(node("n2", 2), p)
		w.subnets("waiting", "10.0.1.0/24")
		w.put(p)
		w.put(anew)
		w.result(0, "Node n2: ClusterSubnetExhausted")
		w.address("p", "")
	})
	t.Run("unseen", func(t *testing.T) {
		w := start(t)
		w.drop(node("waiting", 5), node("n1", 1))
		w.state.Nodes["n2"] = anew // without its annotation
		w.state.SwitchSubnets = map[string][]netip.Prefix{"n2": {netip.MustParsePrefix("10.0.1.0/24")}}
		again := w.restarted()
		again.result(1)
		again.subnets("n2", "10.0.1.0/24")
		again.address("p", "10.0.1.3")
	})
	t.Run("unseen, and a pod's author names subnets", func(t *testing.T) {
		w := start(t)
		w.drop(node("waiting", 5), node("n4", 4), node("n1", 1))
		w.state.Nodes["n2"] = anew
		hostile := *w.state.Pods[podName("p")]
		hostile.Annotated = annotation.MarshalPodNetworks(annotation.PodNetwork{IPs: prefixes("10.0.3.9/24")})
		w.state.Pods[podName("p")] = &hostile
		again := w.restarted()
		again.subnets("n2", "10.0.0.0/24") // the first that is free
		again.address("p", "10.0.0.3")
	})
}

// A node's machine may run on although its Node is deleted. Nobody gets its subnets while pods are bound to it that
// have addresses there, also not after a restart, and for a minute after the last of those has ended. A pod whose
// annotation can't be read holds nothing back.
func TestSubnetsOfADeletedNode(t *testing.T) {
	w := newWorld(t, "10.0.0.0/22/24,fd01::/62/64")
	w.put(node("n1", 1), node("n2", 2), node("n3", 3), node("n4", 4),
		pod("a", "n2"), pod("b", "n2"), pod("c", "n3"))
	w.drop(node("n2", 2), node("n3", 3))
	odd := *w.state.Pods[podName("c")]
	odd.Annotated = "{"
	w.put(&odd, node("new", 5))
	w.subnets("new", "10.0.2.0/24 fd01:0:0:2::/64")
	w.put(node("late", 6))
	w.pause = 0
	w.subnets("late", "")

	w.clock += 1000 // no master ran
	again := w.restarted()
	again.put(node("other", 7))
	again.subnets("other", "")
	ended := *again.state.Pods[podName("a")]
	ended.Finished = true
	again.drop(pod("b", "n2"))
	again.wait(3 * freedFor)
	again.subnets("late", "")
	again.wait(freedFor - 1)
	again.put(&ended)
	again.wait(freedFor - 1)
	again.subnets("late", "")
	again.wait(1)
	again.subnets("late", "10.0.1.0/24 fd01:0:0:1::/64")
}

// After a restart a node keeps the subnets that its switch has, although an older node claims them meanwhile.
func TestSubnetsOfASwitchAreKept(t *testing.T) {
	w := newWorld(t, "10.0.0.0/22/24,fd01::/48/64")
	w.put(node("old", 1), node("n", 2))
	w.subnets("n", "10.0.1.0/24 fd01:0:0:1::/64")
	w.state.SwitchSubnets = maps.Clone(w.state.NodeSubnets)
	thief := *w.state.Nodes["old"]
	thief.Annotated = annotation.MarshalNodeSubnets(w.state.NodeSubnets["n"])
	w.state.Nodes["old"] = &thief
	again := w.restarted()
	again.subnets("n", "10.0.1.0/24 fd01:0:0:1::/64")
	again.subnets("old", "10.0.0.0/24 fd01::/64")
}

// Neither a node with a very large subnet nor a large range slows down the search.
func TestLargeRanges(t *testing.T) {
	w := newWorld(t, "fd00::/8/64")
	w.put(node("greedy", 1, "fd00::/9"))
	w.put(node("n1", 2), node("n2", 3))
	w.subnets("n1", "fd80::/64")
	w.subnets("n2", "fd80:0:0:1::/64")
	w.put(node("all", 4, "fdc0::/10"), node("rest", 5, "fda0::/11"))
	w.result(0)
	w.put(node("n3", 6))
	w.subnets("n3", "fd80:0:0:2::/64")
}

// Nodes that come and go under ever new names leave nothing behind but the former subnets of the last ones.
func TestNodesThatNeverReturn(t *testing.T) {
	w := newWorld(t, "fd00::/16/64")
	for i := range maxFormer * 2 {
		n := node(fmt.Sprint("n", i), int64(i))
		w.updateAll(n)
	}
	if len(w.ledger.former.held) != maxFormer || len(w.ledger.former.order) != maxFormer {
		t.Errorf("%d nodes are remembered, in an order of %d, want %d", len(w.ledger.former.held), len(w.ledger.former.order),
			maxFormer)
	}
	if len(w.ledger.subnets.held) != 0 {
		t.Errorf("%d subnets are held, want none", len(w.ledger.subnets.held))
	}
}

func (w *world) subnets(node, want string) {
	w.t.Helper()
	if got := strings.Trim(fmt.Sprint(w.state.NodeSubnets[node]), "[]"); got != want {
		w.t.Errorf("node %s has %q, want %q", node, got, want)
	}
}
