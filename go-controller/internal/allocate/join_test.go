package allocate

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ownExternal is an external address that no other gateway of a test has.
func ownExternal(name string) netip.Prefix {
	h := fnv.New32a()
	h.Write([]byte(name))
	sum := h.Sum32()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 18, byte(sum >> 8), byte(sum)}), 16)
}

// gateway is a gateway node; addrs is what it claims on the join switch.
func gateway(name string, created int64, join ...string) *cluster.Node {
	n := node(name, created)
	n.Gateway = &annotation.L3Gateway{Bridge: "breth0", Port: "breth0_" + name, IPs: []netip.Prefix{ownExternal(name)},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
	n.Addrs = []netip.Addr{ownExternal(name).Addr()}
	n.JoinAnnotated = annotation.MarshalGatewayJoinAddrs(prefixes(join...))
	return n
}

func (w *world) join(node, want string) {
	w.t.Helper()
	if got := strings.Trim(fmt.Sprint(w.state.JoinAddrs[node]), "[]"); got != want {
		w.t.Errorf("the gateway router of %s has %q, want %q", node, got, want)
	}
}

func TestGatewaysGetTheNextFreeJoinAddresses(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.put(node("n0", 0))
	w.join("n0", "")
	w.put(gateway("n1", 1), gateway("n2", 2))
	w.result(2) // subnets and join addresses of a node in one patch
	w.join("n1", "100.64.1.2/24 fd98::2/64")
	w.join("n2", "100.64.1.3/24 fd98::3/64")
	if !index.GatewaysOf(w.state).Any(true) || index.GatewaysOf(w.state).Any(false) {
		t.Error("want a way out for IPv4 only: no next hop is of IPv6")
	}
	w.put(node("n1", 1, "10.0.1.0/24", "fd01:0:0:1::/64")) // no gateway any more; its annotation went with it
	w.join("n1", "")
	w.put(gateway("n3", 3))
	w.join("n3", "100.64.1.2/24 fd98::2/64")
	again := w.restarted()
	again.result(0)
	again.join("n2", "100.64.1.3/24 fd98::3/64")
	again.join("n3", "100.64.1.2/24 fd98::2/64")
}

// A node that is no gateway any more loses its addresses on the join switch, although its annotation still has them.
func TestJoinAnnotationOfNoGateway(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	n := gateway("n1", 1, "100.64.1.7/24")
	n.Gateway = nil
	w.put(n)
	w.result(1)
	if p := w.last.Patches[0]; len(p.Remove) != 1 || p.Remove[0] != annotation.GatewayJoinAddrs ||
		p.Annotations[annotation.NodeSubnets] == "" {
		t.Errorf("patch %+v, want the subnets and the removal of %s", p, annotation.GatewayJoinAddrs)
	}
}

// What is needed no more was perhaps in use until the master began, so others get it after a minute.
func TestUnneededSinceNoMasterRan(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.pause = 0
	n1 := gateway("n1", 1, "100.64.1.2/24")
	n1.Gateway = nil
	n1.JoinAnnotated = `{"default":{"ipv4":"100.64.1.2/24"},"red.own/exit":{"ipv4":"10.0.0.4/24"},` +
		`"red.own":{"ipv4":"100.66.0.2/24"}}`
	n1.Annotated = annotation.MarshalNodeSubnets(prefixes("10.0.0.0/24"))
	red := primary("red", "own", "10.77.0.0/16")
	w.put(n1, gateway("n2", 2), pod("a", "n1"), pod("b", "n1"), red)
	w.join("n2", "100.64.1.3/24")
	w.address("a", "10.0.0.3")
	w.address("b", "10.0.0.5")
	w.put(labelled("red", true), podIn("red", "c", "n2"))
	w.exits("red.own", "n2", "10.0.1.3/24", "100.66.0.3/24")
	w.clock += freedFor
	w.put(node("n9", 9)) // the time is told after an update
	w.put(gateway("n3", 3), podIn("red", "e", "n3"))
	w.join("n3", "100.64.1.2/24")
	w.exits("red.own", "n3", "10.0.3.3/24", "100.66.0.2/24")
}

func TestJoinAnnotations(t *testing.T) {
	malformed := gateway("n", 2)
	malformed.JoinAnnotated = "garbage"
	for what, c := range map[string]struct {
		node    *cluster.Node
		want    string
		problem string
	}{
		"right": {gateway("n", 2, "100.64.1.9/24", "fd98::9/64"), "100.64.1.9/24 fd98::9/64", ""},
		"none":  {gateway("n", 2), "100.64.1.3/24 fd98::3/64", ""},
		"malformed": {malformed, "100.64.1.3/24 fd98::3/64",
			"Node n: GatewayJoinAddressRefused: parsing k8s.ovn.org/"},
		"taken": {gateway("n", 2, "100.64.1.2/24", "fd98::2/64"), "100.64.1.3/24 fd98::3/64",
			"held by the gateway router of Node first"},
		"the cluster's": {gateway("n", 2, "100.64.1.1/24", "fd98::1/64"), "100.64.1.3/24 fd98::3/64",
			"want the same number, 2 to 254, of each of the join subnets [100.64.1.0/24 fd98::/64]"},
		"elsewhere": {gateway("n", 2, "100.65.1.9/24", "fd98::9/64"), "100.64.1.3/24 fd98::3/64",
			"want the same number"},
		"of different number": {gateway("n", 2, "100.64.1.9/24", "fd98::8/64"), "100.64.1.3/24 fd98::3/64",
			"want the same number"},
		"one family": {gateway("n", 2, "100.64.1.9/24"), "100.64.1.3/24 fd98::3/64", "want the same number"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
			w.put(gateway("first", 1))
			w.put(c.node)
			if c.problem == "" {
				w.result(1)
			} else {
				w.result(1, c.problem)
			}
			w.join("n", c.want)
		})
	}
}

func TestTamperedJoinAnnotation(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(gateway("n1", 1))
	for range 2 {
		tampered := *w.state.Nodes["n1"]
		tampered.JoinAnnotated = annotation.MarshalGatewayJoinAddrs(prefixes("100.64.1.77/24"))
		w.put(&tampered)
		w.result(1, "[100.64.1.77/24] is not what the gateway router holds: it is written anew")
		w.join("n1", "100.64.1.2/24")
	}
}

func TestJoinSubnetExhausted(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.state.Networks[names.Own].JoinSubnets = []netip.Prefix{netip.MustParsePrefix("100.64.1.0/29")}
	w.ledger = New(w.state.Networks)
	for i := range 5 {
		w.put(gateway(fmt.Sprint("n", i), int64(i)))
	}
	w.join("n4", "100.64.1.6/29")
	w.put(gateway("late", 9))
	w.result(1,
		"Node late: JoinSubnetExhausted: no address for the node's gateway router is free in the join subnets "+
			"[100.64.1.0/29]: it waits for one; widen --join-subnet or remove gateways")
	w.drop(gateway("n2", 2))
	w.join("late", "100.64.1.4/29")
}

// A node that was set up by hand is no object of the API server and is not patched.
func TestByHandNodesAreNotPatched(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	n := gateway("n1", 0)
	n.UID, n.ByHand = "", true
	w.put(n)
	w.result(0)
	w.subnets("n1", "10.0.0.0/24")
	w.join("n1", "100.64.1.2/24")
}
