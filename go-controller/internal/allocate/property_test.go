package allocate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// updateAll adds a node and deletes it.
func (w *world) updateAll(n *cluster.Node) {
	w.t.Helper()
	w.put(n)
	w.drop(n)
}

// random is one random event in a small cluster in which everything runs out, and whose users write what they like.
func random(r *rand.Rand, w *world, clock int64) cluster.Event {
	uid := fmt.Sprint("uid-", clock)
	if r.IntN(5) == 0 {
		n := node(fmt.Sprint("n", r.IntN(6)), clock)
		n.UID = uid
		if old := w.state.Nodes[n.Name]; old != nil && r.IntN(3) > 0 {
			*n = *old
		}
		switch r.IntN(6) {
		case 0:
			return cluster.Event{Ref: n.Ref()}
		case 1:
			n.Annotated = "garbage"
		case 2:
			n.Annotated = ""
		case 3:
			v4, _ := ipnet.Subnet(netip.MustParsePrefix("10.0.0.0/25"), 26+r.IntN(3), uint64(r.IntN(4)))
			v6, _ := ipnet.Subnet(netip.MustParsePrefix("fd01::/61"), 63+r.IntN(2), uint64(r.IntN(8)))
			n.Annotated = annotation.MarshalNodeSubnets([]netip.Prefix{v4, v6})
		}
		return cluster.Event{Ref: n.Ref(), New: n}
	}
	p := pod(fmt.Sprint("p", r.IntN(50)), fmt.Sprint("n", r.IntN(6)))
	p.UID, p.Created = uid, clock
	if old := w.state.Pods[p.Name]; old != nil && r.IntN(2) == 0 {
		*p = *old
	}
	switch r.IntN(8) {
	case 0, 1:
		return cluster.Event{Ref: p.Ref()}
	case 2:
		p.Finished = true
	case 3:
		p.Annotated, p.ClassicOK = "garbage", false
	case 4:
		q := annotated(p.Name.Name, p.Node, r.IntN(2) == 0, fmt.Sprintf("10.0.0.%d/28", r.IntN(80)),
			fmt.Sprintf("fd01:0:0:%d::%x/64", r.IntN(5), r.IntN(20)))
		p.Annotated, p.ClassicOK = q.Annotated, r.IntN(2) == 0
	}
	return cluster.Event{Ref: p.Ref(), New: p}
}

// hasSource is true when one of the addresses is the source of health checks.
func hasSource(ips []netip.Prefix) bool {
	return slices.ContainsFunc(ips, func(ip netip.Prefix) bool {
		source, ok := cluster.HealthSource(ip.Masked())
		return ok && source == ip.Addr()
	})
}

// asking lists the pods that claim the source address of health checks, now or after the events.
func (w *world) asking(events []cluster.Event) map[cluster.Name]bool {
	out := map[cluster.Name]bool{}
	ask := func(p *cluster.Pod) {
		if p == nil {
			return
		}
		if n, err := annotation.ParsePodNetworks(p.Annotated); err == nil && hasSource(n.IPs) {
			out[p.Name] = true
		}
	}
	for _, p := range w.state.Pods {
		ask(p)
	}
	for _, e := range events {
		if p, ok := e.New.(*cluster.Pod); ok {
			ask(p)
		}
	}
	return out
}

// check checks what must be true at any moment. asked is the pods that claimed the source address of health checks.
func (w *world) check(asked map[cluster.Name]bool) {
	w.t.Helper()
	for a, as := range w.state.NodeSubnets {
		if w.state.Nodes[a] == nil {
			w.t.Fatalf("node %s is gone and holds %v", a, as)
		}
		for b, bs := range w.state.NodeSubnets {
			for i := range as {
				if a != b && as[i].Overlaps(bs[i]) {
					w.t.Fatalf("nodes %s and %s hold %v and %v", a, b, as, bs)
				}
			}
		}
	}
	taken := map[any]cluster.Name{}
	for port, net := range w.state.PodNetworks {
		n := port.Pod
		p := w.state.Pods[n]
		if p == nil || !p.WantsNetwork() {
			w.t.Fatalf("pod %s holds %v and is %+v", n, net.IPs, p)
		}
		for i, ip := range net.IPs {
			s := w.state.NodeSubnets[p.Node][i]
			first, _ := ipnet.Nth(s, firstPod)
			if source, ok := cluster.HealthSource(s); ok && ip.Addr() == source && !asked[n] {
				w.t.Fatalf("pod %s was given %v, where health checks come from", n, ip)
			}
			if holder, held := index.HealthChecksOf(w.state).SourceHolder(s); held &&
				!hasSource(w.state.PodNetworks[cluster.PodPort{Pod: holder}].IPs) {
				w.t.Fatalf("pod %s is said to hold the source of %s, and does not", holder, s)
			}
			if !s.Contains(ip.Addr()) || ip.Bits() != s.Bits() || ip.Addr().Less(first) || s.Addr().Is4() &&
				ip.Addr() == ipnet.Last(s) {
				w.t.Fatalf("pod %s holds %v on a node with %v", n, ip, s)
			}
			if other, twice := taken[ip.Addr()]; twice {
				w.t.Fatalf("pods %s and %s hold %s", n, other, ip)
			}
			taken[ip.Addr()] = n
		}
		if other, twice := taken[net.MAC]; twice {
			w.t.Fatalf("pods %s and %s hold %s", n, other, net.MAC)
		}
		taken[net.MAC] = n
	}
	for _, p := range w.state.Pods {
		lease := w.ledger.nodes[p.Node]
		_, has := w.state.PodNetworks[cluster.PodPort{Pod: p.Name}]
		if !has && p.WantsNetwork() && lease != nil && !lease.pools[0].full() {
			w.t.Fatalf("pod %s has no address, with %d of %v taken", p.Name, len(lease.pools[0].used), lease.subnets)
		}
	}
}

// No two grants overlap, and every grant is inside its node's subnet. A ledger that is rebuilt from the annotations
// grants the same and writes nothing. When everything is deleted, nothing is left.
func TestProperties(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t, "10.0.0.0/26/28,fd01::/62/64")
			for clock := range int64(200) {
				events := map[cluster.Ref]cluster.Event{}
				for range 1 + r.IntN(4) {
					e := random(r, w, clock)
					events[e.Ref] = e
				}
				var batch []cluster.Event
				for _, e := range events {
					batch = append(batch, e)
				}
				asked := w.asking(batch)
				w.batch(batch...)
				w.check(asked)
			}
			again := w.restarted()
			if len(again.last.Patches) != 0 {
				t.Errorf("patches after a restart: %v", again.last.Patches)
			}
			if !reflect.DeepEqual(again.state.NodeSubnets, w.state.NodeSubnets) ||
				!maps.EqualFunc(again.state.PodNetworks, w.state.PodNetworks, cluster.SamePodNetwork) {
				t.Errorf("after a restart %v %v, before %v %v", again.state.NodeSubnets, again.state.PodNetworks,
					w.state.NodeSubnets, w.state.PodNetworks)
			}
			w.empty(r)
		})
	}
}

// empty deletes everything, in some order.
func (w *world) empty(r *rand.Rand) {
	w.t.Helper()
	var refs []cluster.Ref
	for _, n := range w.state.Nodes {
		refs = append(refs, n.Ref())
	}
	for _, p := range w.state.Pods {
		refs = append(refs, p.Ref())
	}
	r.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	for _, ref := range refs {
		w.batch(cluster.Event{Ref: ref})
	}
	l := w.ledger
	if n := len(l.nodes) + len(l.pods) + len(l.waitingNodes) + len(l.waitingPods) + len(l.subnets.held) +
		len(l.subnets.odd); n != 0 {
		w.t.Errorf("left: nodes %v, pods %v, starved %v %v, subnets %v %v", l.nodes, l.pods, l.waitingNodes, l.waitingPods,
			l.subnets.held, l.subnets.odd)
	}
	if n := len(w.state.NodeSubnets) + len(w.state.PodNetworks); n != 0 {
		w.t.Errorf("left: %v %v", w.state.NodeSubnets, w.state.PodNetworks)
	}
}

// ParseNodeSubnets is the inverse of MarshalNodeSubnets for granted subnets.
func TestGrantsSurviveTheWire(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.put(node("n1", 1), pod("p", "n1"))
	held := w.state.PodNetworks[cluster.PodPort{Pod: podName("p")}]
	text := annotation.MarshalPodNetworks(held)
	got, err := annotation.ParsePodNetworks(text)
	if err != nil || !cluster.SamePodNetwork(got, held) {
		t.Errorf("%v, %v, want %v", got, err, w.state.PodNetworks)
	}
}
