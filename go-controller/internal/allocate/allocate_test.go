package allocate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// world is a ledger and its cluster. The API server of the cluster applies every patch at once.
type world struct {
	t      *testing.T
	config config.Cluster
	state  *cluster.State
	ledger *Ledger
	last   Result
	clock  int64
	pause  int64 // seconds after each update
}

func newWorld(t *testing.T, subnets string) *world {
	t.Helper()
	c := config.DefaultCluster()
	var err error
	if c.Subnets, err = config.ParseClusterSubnets(subnets); err != nil {
		t.Fatal(err)
	}
	s := index.NewState(c)
	return &world{t: t, config: c, state: s, ledger: New(s.Networks), pause: freedFor}
}

// put adds or changes objects, in one batch.
func (w *world) put(objects ...cluster.Object) Result {
	w.t.Helper()
	var events []cluster.Event
	for _, o := range objects {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	return w.batch(events...)
}

func (w *world) drop(objects ...cluster.Object) Result {
	w.t.Helper()
	var events []cluster.Event
	for _, o := range objects {
		events = append(events, cluster.Event{Ref: o.Ref()})
	}
	return w.batch(events...)
}

// batch applies events, and then the patches that they lead to, which must not lead to anything more.
func (w *world) batch(events ...cluster.Event) Result {
	w.t.Helper()
	w.last = w.update(events)
	var patched []cluster.Event
	for _, p := range w.last.Patches {
		patched = append(patched, w.patched(p))
	}
	if more := w.update(patched); len(more.Patches)+len(more.Problems)+len(more.Changes) != 0 {
		w.t.Fatalf("the patches %v led to %+v", w.last.Patches, more)
	}
	return w.last
}

func (w *world) update(events []cluster.Event) Result {
	var changes []cluster.Change
	for _, e := range events {
		if c, ok := w.state.Apply(e); ok {
			changes = append(changes, c)
		}
	}
	out := w.ledger.Update(w.state, changes)
	if w.clock += w.pause; w.ledger.Advance(w.state, w.clock) {
		more := w.ledger.Update(w.state, nil)
		out.Changes = append(out.Changes, more.Changes...)
		out.Patches = append(out.Patches, more.Patches...)
		out.Problems = append(out.Problems, more.Problems...)
	}
	return out
}

// patched is the event that a patch leads to.
func (w *world) patched(p Patch) cluster.Event {
	w.t.Helper()
	switch o := w.state.Object(p.Ref).(type) {
	case *cluster.IPAMClaim:
		return w.patchedClaim(o, p)
	case *cluster.Node:
		n := *o
		if p.UID != o.UID {
			w.t.Fatalf("patch %v of %s %s", p, o.Name, o.UID)
		}
		if raw, ok := p.Annotations[annotation.NodeSubnets]; ok || slices.Contains(p.Remove, annotation.NodeSubnets) {
			n.Annotated = raw
		}
		if raw, ok := p.Annotations[annotation.GatewayJoinAddrs]; ok ||
			slices.Contains(p.Remove, annotation.GatewayJoinAddrs) {
			n.JoinAnnotated = raw
		}
		var errs [2]error
		_, _, errs[0] = annotation.NodeSubnetsIn(n.Annotated, names.Own)
		_, _, errs[1] = annotation.ReadGatewayJoins(n.JoinAnnotated).In(names.Own)
		if err := errors.Join(errs[:]...); err != nil {
			w.t.Fatalf("patch %v of %s: %v", p, o.Name, err)
		}
		return cluster.Event{Ref: p.Ref, New: &n}
	case *cluster.Pod:
		q := *o
		if len(p.Remove) > 0 {
			q.Annotated, q.ClassicOK = "", false
			return cluster.Event{Ref: p.Ref, New: &q}
		}
		net, err := annotation.ParsePodNetworks(p.Annotations[annotation.PodNetworks])
		if err != nil || p.UID != o.UID || p.Annotations[annotation.PodClassic] != annotation.MarshalPodClassic(net) {
			w.t.Fatalf("patch %v of %s %s: %v", p, o.Name, o.UID, err)
		}
		q.Annotated, q.ClassicOK = p.Annotations[annotation.PodNetworks], true
		q.StatusOK = q.StatusOK || p.Annotations[annotation.NetworkStatus] != ""
		return cluster.Event{Ref: p.Ref, New: &q}
	}
	w.t.Fatalf("patch of %s, which is not there", p.Ref)
	return cluster.Event{}
}

func (w *world) address(pod, want string) {
	w.t.Helper()
	var got []string
	for _, ip := range w.state.PodNetworks[cluster.PodPort{Pod: podName(pod)}].IPs {
		got = append(got, ip.Addr().String())
	}
	if strings.Join(got, " ") != want {
		w.t.Errorf("pod %s has %q, want %q", pod, got, want)
	}
}

// result checks what the last batch led to: the number of patches, and the reasons of its problems, each with a part of
// its message.
func (w *world) result(patches int, problems ...string) {
	w.t.Helper()
	if len(w.last.Patches) != patches {
		w.t.Errorf("patches %v, want %d", w.last.Patches, patches)
	}
	if len(w.last.Problems) != len(problems) {
		w.t.Errorf("problems %v, want %d: %q", w.last.Problems, len(problems), problems)
		return
	}
	for i, p := range w.last.Problems {
		if !strings.Contains(p.Error(), problems[i]) {
			w.t.Errorf("problem %q, want %q", p.Error(), problems[i])
		}
	}
}

func podName(n string) cluster.Name { return cluster.Name{Namespace: "default", Name: n} }

func node(name string, created int64, annotated ...string) *cluster.Node {
	n := &cluster.Node{Name: name, UID: "uid-" + name, Created: created}
	n.Annotated = annotation.MarshalNodeSubnets(prefixes(annotated...))
	return n
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func pod(name, node string) *cluster.Pod {
	return &cluster.Pod{Name: podName(name), UID: "uid-" + name, Node: node}
}

// annotated is a pod that claims addresses, with the right MAC and gateways if sane.
func annotated(name, node string, sane bool, ips ...string) *cluster.Pod {
	p := pod(name, node)
	net := annotation.PodNetwork{IPs: prefixes(ips...), MAC: ipnet.MACFor(ipnet.Addrs(prefixes(ips...)))}
	for _, ip := range net.IPs {
		router, _ := subnet.Router(ip.Masked())
		net.Gateways = append(net.Gateways, router)
	}
	if !sane {
		net.MAC[5]++
	}
	p.Annotated, p.ClassicOK = annotation.MarshalPodNetworks(net), true
	return p
}

func TestFamilies(t *testing.T) {
	for subnets, want := range map[string]struct{ node, pod string }{
		"10.128.0.0/14/23":              {"10.128.0.0/23", "10.128.0.3"},
		"fd01::/48/64":                  {"fd01::/64", "fd01::3"},
		"fd01::/48/64,10.128.0.0/14/23": {"10.128.0.0/23 fd01::/64", "10.128.0.3 fd01::3"},
	} {
		w := newWorld(t, subnets)
		w.put(pod("early", "n1"))
		w.result(0)
		w.put(node("n1", 1))
		w.result(2)
		w.subnets("n1", want.node)
		w.address("early", want.pod)
	}
}

func TestWhoWantsNothing(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	host, done, pending := pod("host", "n1"), pod("done", "n1"), pod("pending", "")
	host.HostNetwork, done.Finished = true, true
	w.put(node("n1", 1), host, done, pending, pod("lost", "nowhere"))
	w.result(1)
	for _, p := range []string{"host", "done", "pending", "lost"} {
		w.address(p, "")
	}
}

// Completed pods do not own their address any more, neither while the ledger runs nor after a restart, although their
// annotation still has it.
func TestCompletedPods(t *testing.T) {
	w := newWorld(t, "10.0.0.0/28/28") // 11 addresses for pods
	w.put(node("n1", 1))
	for i := range 11 {
		w.put(pod(fmt.Sprint("p", i), "n1"))
	}
	w.put(pod("late", "n1"))
	w.result(0,
		"Pod default/late: NodeSubnetExhausted: no address is free in subnet 10.0.0.0/28 of node n1: the pod waits for one")
	again := w.restarted()
	again.result(0, "Pod default/late: NodeSubnetExhausted")
	done := *w.state.Pods[podName("p4")]
	done.Finished = true
	w.put(&done)
	w.result(1)
	w.address("late", "10.0.0.7")
	w.address("p4", "")
	again = w.restarted()
	again.result(0)
	again.address("late", "10.0.0.7")
	again.address("p4", "")
}

func TestAddressesAreGivenInTurn(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1))
	for i, want := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
		p := pod("p", "n1")
		p.UID = fmt.Sprint(i)
		w.put(p) // the same name, another pod
		w.address("p", want)
		w.result(1)
	}
	w.drop(pod("p", "n1"))
	w.address("p", "")
	w.put(pod("q", "n1"))
	w.address("q", "10.0.0.6")
}

func TestSameNameOnAnotherNode(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), node("n2", 2), pod("p", "n1"))
	w.address("p", "10.0.0.3")
	moved := pod("p", "n2")
	moved.UID = "another"
	w.put(moved)
	w.result(1)
	w.address("p", "10.0.1.3")
	if n := len(w.ledger.nodes["n1"].pools[0].used); n != 0 {
		t.Errorf("%d addresses of the old node are still taken, want 0", n)
	}
}

// An annotation that can't be right is refused and written anew, once.
func TestPodAnnotations(t *testing.T) {
	garbage := pod("p", "n1")
	garbage.Annotated = "garbage"
	noClassic := annotated("p", "n1", true, "10.0.0.9/24", "fd01::9/64")
	noClassic.ClassicOK = false
	forged := annotated("p", "n1", true, "10.0.0.9/24", "fd01::9/64")
	forged.Annotated = strings.Replace(forged.Annotated, `{"ip_`,
		`{"routes":[{"dest":"8.8.8.0/24","nextHop":"10.0.0.7"}],"ip_`, 1)
	for what, c := range map[string]struct {
		pod     *cluster.Pod
		patches int
		address string
		problem string // "" for none
	}{
		"right": {annotated("p", "n1", true, "10.0.0.9/24", "fd01::9/64"), 0, "10.0.0.9 fd01::9", ""},
		"none":  {pod("p", "n1"), 1, "10.0.0.4 fd01::4", ""},
		"garbage": {garbage, 1, "10.0.0.4 fd01::4",
			"Pod default/p: PodAddressRefused: parsing k8s.ovn.org/"},
		"no classic": {noClassic, 1, "10.0.0.9 fd01::9", ""},
		"wrong MAC": {annotated("p", "n1", false, "10.0.0.9/24", "fd01::9/64"), 1, "10.0.0.9 fd01::9",
			"want {\"default\":{\"ip_addresses\":[\"10.0.0.9/24\",\"fd01::9/64\"]"},
		"routes": {forged, 1, "10.0.0.9 fd01::9",
			"want {\"default\":{\"ip_addresses\":[\"10.0.0.9/24\",\"fd01::9/64\"]"},
		"one family": {annotated("p", "n1", true, "10.0.0.9/24"), 1, "10.0.0.4 fd01::4",
			"want one address in each of the node's subnets [10.0.0.0/24 fd01::/64]"},
		"another node's": {annotated("p", "n1", true, "10.0.1.9/24", "fd01::9/64"), 1, "10.0.0.4 fd01::4",
			"10.0.1.9/24 is not in the node's subnet 10.0.0.0/24"},
		"another length": {annotated("p", "n1", true, "10.0.0.9/25", "fd01::9/64"), 1, "10.0.0.4 fd01::4",
			"10.0.0.9/25 is not in the node's subnet 10.0.0.0/24"},
		"taken": {annotated("p", "n1", true, "10.0.0.3/24", "fd01::9/64"), 1, "10.0.0.4 fd01::4",
			"10.0.0.3/24 is already the address of Pod default/first"},
		"taken in the other": {annotated("p", "n1", true, "10.0.0.9/24", "fd01::3/64"), 1, "10.0.0.4 fd01::4",
			"fd01::3/64 is already the address of Pod default/first"},
		"the router's": {annotated("p", "n1", true, "10.0.0.1/24", "fd01::9/64"), 1, "10.0.0.4 fd01::4",
			"10.0.0.1/24 is not one for pods in the node's subnet 10.0.0.0/24: want number 3 to 253"},
		"the broadcast": {annotated("p", "n1", true, "10.0.0.255/24", "fd01::9/64"), 1, "10.0.0.4 fd01::4",
			"10.0.0.255/24 is not one for pods"},
		"health checks'": {annotated("p", "n1", true, "10.0.0.254/24", "fd01::ffff:ffff/64"), 0, "10.0.0.254 fd01::ffff:ffff",
			""},
		"far up": {annotated("p", "n1", true, "10.0.0.9/24", "fd01::1:0:9/64"), 1, "10.0.0.4 fd01::4",
			"fd01::1:0:9/64 is not one for pods"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
			w.put(node("n1", 1), node("n2", 2), pod("first", "n1"))
			w.put(c.pod)
			if c.problem == "" {
				w.result(c.patches)
			} else {
				w.result(c.patches, c.problem)
			}
			w.address("p", c.address)
			w.address("first", "10.0.0.3 fd01::3")
		})
	}
}

// What a user does to an annotation is undone, each time once.
func TestTamperedAndDeletedAnnotations(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), pod("p", "n1"))
	good := w.state.Pods[podName("p")]
	for range 3 {
		w.put(pod("p", "n1")) // deleted
		w.result(1)
		w.put(annotated("p", "n1", true, "10.0.0.77/24"))
		w.result(1, `want {"default":{"ip_addresses":["10.0.0.3/24"]`)
		w.put(node("n1", 1))
		w.result(1)
		w.put(node("n1", 1, "10.0.7.0/24"))
		w.result(1,
			"Node n1: NodeSubnetRefused: annotation k8s.ovn.org/node-subnets: [10.0.7.0/24] is not what the node holds: "+
				"[10.0.0.0/24] is written again")
		bad := node("n1", 1)
		bad.Annotated = "garbage"
		w.put(bad)
		w.result(1, ": [10.0.0.0/24] is written again")
		w.address("p", "10.0.0.3")
		w.subnets("n1", "10.0.0.0/24")
	}
	if now := w.state.Pods[podName("p")]; !now.Equal(good) {
		t.Errorf("the pod ends as %+v, want %+v", now, good)
	}
}

// Somebody writes the same wrong value again while our patch is on its way. Of the versions in between, the event only
// says that there were some.
func TestTamperedWhileThePatchIsOnItsWay(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), pod("p", "n1"))
	bad := annotated("p", "n1", true, "10.0.0.77/24")
	if res := w.update([]cluster.Event{{Ref: bad.Ref(), New: bad}}); len(res.Patches) != 1 {
		t.Fatalf("%+v, want a patch", res)
	}
	if res := w.update([]cluster.Event{{Ref: bad.Ref(), New: bad}}); len(res.Patches) != 0 {
		t.Errorf("the same version again: %+v, want nothing", res)
	}
	w.batch(cluster.Event{Ref: bad.Ref(), New: bad, Between: true})
	w.result(1, "PodAddressRefused")
	other := annotated("p", "n1", true, "10.0.0.78/24")
	w.put(other)
	w.result(1, "PodAddressRefused")
}
