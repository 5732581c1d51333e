package core_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
	"github.com/northbound-net/northbound/go-controller/internal/translate/topology"
)

// world is a core with a database in memory, and what was last reported to users.
type world struct {
	*core.Core
	t       *testing.T
	db      *nb.Database
	reports []cluster.Problem
}

func newWorld(t *testing.T) *world {
	s := nb.NewSchema()
	w := &world{Core: core.New(config.DefaultCluster(), s, all.Translators(s)), t: t, db: nb.NewDatabase(s)}
	w.Start()
	w.carryOut(w.Owners())
	return w
}

// put adds or changes objects.
func (w *world) put(objects ...cluster.Object) {
	w.t.Helper()
	var events []cluster.Event
	for _, o := range objects {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	w.carryOut(w.Step(events).Dirty)
}

func (w *world) drop(o cluster.Object) {
	w.t.Helper()
	w.carryOut(w.Step([]cluster.Event{{Ref: o.Ref()}}).Dirty)
}

func (w *world) carryOut(dirty []nb.Owner) {
	w.t.Helper()
	b := w.Plan(w.db, append(dirty, w.Owners()[0]), nil)
	if err := b.Err(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.db.Apply(b.Plans...); err != nil {
		w.t.Fatal(err)
	}
	w.reports = w.News(b)
}

// serviceOf is a service with a cluster IP of its own, and external addresses.
func serviceOf(name string, created int64, external ...string) *cluster.Service {
	s := &cluster.Service{Name: cluster.Name{Namespace: "default", Name: name}, UID: "uid-" + name, Created: created,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, name[0]})},
		Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
	for _, a := range external {
		s.ExternalIPs = append(s.ExternalIPs, netip.MustParseAddr(a))
	}
	return s
}

// When services claim one address, those without it are told which service has it: once, and again when the address,
// the loser or the holder is another.
func TestServicesThatClaimOneAddress(t *testing.T) {
	w := newWorld(t)
	told := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range w.reports {
			if p.Reason != service.ReasonAddressInUse || p.UID != "uid-"+p.Ref.Name.Name {
				t.Errorf("%s: problem %+v", what, p)
			}
			got = append(got, p.Ref.Name.Name+": "+p.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: problems %q, want %q", what, got, want)
		}
	}
	const lost = "%s: 192.0.2.1:80/TCP is of Service default/%s: want an address and port that no other service has: " +
		"it does not answer there"
	w.put(serviceOf("b", 2, "192.0.2.1"))
	told("nobody else has it")
	w.put(serviceOf("c", 3, "192.0.2.1"))
	told("a younger one", fmt.Sprintf(lost, "c", "b"))
	w.put(serviceOf("c", 3, "192.0.2.1", "192.0.2.2"))
	told("the same loss again")
	w.put(serviceOf("a", 1, "192.0.2.1"))
	told("an older one: the youngest hears who has it now", fmt.Sprintf(lost, "b", "a"), fmt.Sprintf(lost, "c", "a"))
	w.drop(serviceOf("a", 1))
	told("the oldest goes: the next has it", fmt.Sprintf(lost, "c", "b"))
	w.put(serviceOf("c", 3))
	told("a loser asks no more")
	w.put(serviceOf("c", 3, "192.0.2.1"))
	told("and asks again", fmt.Sprintf(lost, "c", "b"))
	limited := serviceOf("a", 1)
	limited.Ingress = []cluster.Ingress{{Addr: netip.MustParseAddr("192.0.2.1")}}
	limited.SourceRanges = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	w.put(limited)
	told("an older one, whose clients the nodes' kernels pick", fmt.Sprintf(lost, "b", "a"), fmt.Sprintf(lost, "c", "a"))
	w.drop(limited)
	var many []string
	for i := range 7 {
		many = append(many, fmt.Sprintf("192.0.2.%d", 10+i))
	}
	w.put(serviceOf("d", 4, many...), serviceOf("e", 5, many...))
	told("many at once",
		"e: 192.0.2.10:80/TCP is of Service default/d, 192.0.2.11:80/TCP is of Service default/d, "+
			"192.0.2.12:80/TCP is of Service default/d, 192.0.2.13:80/TCP is of Service default/d, and 3 more: "+
			"want an address and port that no other service has: it does not answer there")
}

func outsideNode(name string, created int64, ips ...string) *cluster.Node {
	n := &cluster.Node{Name: name, UID: "uid-" + name, Created: created, Gateway: &annotation.L3Gateway{}}
	for _, ip := range ips {
		n.Gateway.IPs = append(n.Gateway.IPs, netip.MustParsePrefix(ip))
		n.Addrs = append(n.Addrs, netip.MustParsePrefix(ip).Addr())
	}
	return n
}

// When gateways claim one address, those without it are told which gateway has it: once, and again when the address,
// the loser or the holder is another.
func TestGatewaysWithOneAddress(t *testing.T) {
	w := newWorld(t)
	told := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range w.reports {
			if p.Reason != topology.ReasonGatewayAddressInUse || p.UID != "uid-"+p.Ref.Name.Name ||
				p.Ref.Kind != cluster.KindNode {
				t.Errorf("%s: problem %+v", what, p)
			}
			got = append(got, p.Ref.Name.Name+": "+p.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: problems %q, want %q", what, got, want)
		}
	}
	const lost = "%s: annotation k8s.ovn.org/l3-gateway-config: ip-addresses: 192.0.2.1 is already of the gateway of " +
		"Node %s: the node is no gateway for IPv4: give it an address that no other node has, " +
		"or delete Node %[2]s if its machine is gone"
	again := func(n *cluster.Node) *cluster.Node { // as it is after the patches
		heir := *n
		if old := w.State.Nodes[n.Name]; old != nil {
			heir.Annotated, heir.JoinAnnotated = old.Annotated, old.JoinAnnotated
		}
		return &heir
	}
	w.put(outsideNode("b", 2, "192.0.2.1/24"))
	told("nobody else has it")
	w.put(outsideNode("c", 3, "192.0.2.1/24"))
	told("a younger one", fmt.Sprintf(lost, "c", "b"))
	w.put(again(outsideNode("c", 3, "192.0.2.1/24", "fd00::1/64")))
	told("the same loss again")
	w.put(outsideNode("a", 1, "192.0.2.1/24"))
	told("an older one: the youngest hears who has it now", fmt.Sprintf(lost, "c", "a"), fmt.Sprintf(lost, "b", "a"))
	w.put(again(outsideNode("b", 2, "192.0.2.2/24")))
	told("a loser gets an address of its own")
	w.drop(outsideNode("a", 1))
	told("the oldest goes: the next has it")
	w.put(outsideNode("d", 4, "192.0.2.1/24", "fd00::1/64"))
	told("both families",
		"d: annotation k8s.ovn.org/l3-gateway-config: ip-addresses: 192.0.2.1 is already of the gateway of Node c, "+
			"fd00::1 is already of the gateway of Node c: "+
			"the node is no gateway for IPv4, IPv6: give it an address that no other node has, "+
			"or delete Node c if its machine is gone")
	restarted := newWorld(t)
	restarted.put(slices.Collect(w.State.Objects(cluster.KindNode))...)
	if len(restarted.reports) != 1 {
		t.Errorf("after a restart %+v, want what d was told", restarted.reports)
	}
}

// A Node object that adopts a node set up by hand loses none of it to an event from before the patch.
func TestAdoptionOutlivesOlderEvents(t *testing.T) {
	w := newWorld(t)
	byHand := outsideNode("n", 0, "192.0.2.1/24")
	byHand.UID, byHand.ByHand, byHand.ChassisID = "", true, "chassis"
	w.put(&cluster.NodeRecord{Node: byHand})
	bare := func(labels map[string]string) *cluster.Node {
		return &cluster.Node{Name: "n", UID: "u", Created: 1, Labels: cluster.NewLabels(labels)}
	}
	for _, labels := range []map[string]string{nil, {"a": "b"}, {"a": "c"}} {
		w.put(bare(labels))
		if n := w.State.Nodes["n"]; n.ByHand || n.Gateway == nil || n.ChassisID != "chassis" {
			t.Fatalf("the Node object is %+v, want it to have adopted the gateway and the chassis", n)
		}
	}
	patched := bare(nil)
	patched.Gateway, patched.ChassisID = byHand.Gateway, byHand.ChassisID
	w.put(patched)
	w.put(bare(nil)) // somebody removes the annotations
	if n := w.State.Nodes["n"]; n.Gateway != nil || n.ChassisID != "" {
		t.Errorf("the Node object is %+v, want nothing adopted any more", n)
	}
}
