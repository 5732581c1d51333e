package allocate

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// own is a part of the cluster's own network.
func own(prefix string) names.Range {
	return names.Range{Network: names.Own, Prefix: netip.MustParsePrefix(prefix)}
}

// restarted is the same cluster with a new ledger, which is told what was freed lately.
func (w *world) restarted() *world { return w.restartedWith(w.ledger.Freed()) }

func (w *world) restartedWith(freed Freed) *world {
	s := index.NewState(w.config)
	s.SwitchSubnets = w.state.SwitchSubnets
	again := &world{t: w.t, config: w.config, state: s, ledger: New(s.Networks), clock: w.clock}
	var changes []cluster.Change
	for _, o := range w.state.All() {
		if c, ok := s.Apply(cluster.Event{Ref: o.Ref, New: o.New}); ok {
			changes = append(changes, c)
		}
	}
	again.ledger.Advance(s, w.clock)
	again.ledger.Keep(s, freed)
	again.last = again.ledger.Update(s, changes)
	return again
}

// wait lets seconds pass, one by one, as a loop would that has nothing else to do.
func (w *world) wait(seconds int64) {
	w.pause = 1
	for range seconds {
		w.last = w.update(nil)
	}
	w.pause = 0
}

// What was freed is not given again for a minute. Who finds nothing else waits, is reported once, and gets it then.
func TestFreedWaits(t *testing.T) {
	w := newWorld(t, "10.0.0.0/28/29,fd01::/63/64") // two nodes of three pods each
	w.pause = 0
	w.put(node("n1", 1), node("n2", 2), pod("a", "n1"), pod("b", "n1"), pod("c", "n1"))
	w.address("a", "10.0.0.3 fd01::3")
	w.drop(pod("a", "n1"), node("n2", 2))
	w.put(pod("d", "n1"), node("n3", 3))
	w.address("d", "")
	w.subnets("n3", "")
	if len(w.last.Problems) != 2 {
		t.Errorf("reported: %v, want that d and n3 wait", w.last.Problems)
	}
	if at, ok := w.ledger.NextFree(); !ok || at != w.clock+freedFor {
		t.Errorf("looked at again at %d, %v, want %d", at, ok, w.clock+freedFor)
	}
	w.wait(freedFor - 1)
	w.address("d", "")
	w.subnets("n3", "")
	if len(w.last.Problems) != 0 {
		t.Errorf("reported again: %v", w.last.Problems)
	}
	w.wait(1)
	w.address("d", "10.0.0.3 fd01::6")
	w.subnets("n3", "10.0.0.8/29 fd01:0:0:1::/64")
	if _, ok := w.ledger.NextFree(); ok {
		t.Error("somebody still waits")
	}
}

// An address that is freed again and again, as that of a pod which asks for it each minute, does not hold back others.
func TestFreedAgain(t *testing.T) {
	nobody := func() map[netip.Prefix]bool { return nil }
	f, again, other := newFreedSet(), netip.MustParseAddr("10.99.0.7"), netip.MustParseAddr("10.99.0.8")
	f.add(netip.PrefixFrom(again, 32))
	f.add(netip.PrefixFrom(other, 32))
	for minute := range int64(10) {
		f.advance((minute+1)*(freedFor-1), nobody)
		if !f.has(again) || f.has(other) != (minute == 0) || len(f.order) > 2 {
			t.Errorf("minute %d: freed lately are %v, in %d entries", minute+1, f.until, len(f.order))
		}
		f.add(netip.PrefixFrom(again, 32))
	}
	if f.advance(f.now+freedFor, nobody); f.has(again) || len(f.order) != 0 || len(f.over) != 2 {
		t.Errorf("at the end %v are freed lately, and %v may be given again", f.until, f.over)
	}
}

// A Node that comes back gets its subnet at once, and so do its pods their addresses: they claim them.
func TestFreedIsClaimedAtOnce(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.pause = 0
	w.put(node("n1", 1), pod("a", "n1"))
	annotated := *w.state.Pods[podName("a")]
	w.drop(node("n1", 1), pod("a", "n1"))
	again := node("n1", 5)
	again.UID = "another"
	w.put(again, node("n2", 6), &annotated)
	w.subnets("n1", "10.0.0.0/24 fd01::/64")
	w.address("a", "10.0.0.3 fd01::3")
	w.subnets("n2", "10.0.1.0/24 fd01:0:0:1::/64")
}

// Addresses on the join switch wait, too.
func TestFreedJoinAddress(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.pause = 0
	gw := func(name string) *cluster.Node { return gateway(name, 1) }
	w.put(gw("n1"))
	first := fmt.Sprint(w.state.JoinAddrs["n1"])
	w.drop(gw("n1"))
	w.put(gw("n2"))
	if got := fmt.Sprint(w.state.JoinAddrs["n2"]); got == first || got == "[]" {
		t.Errorf("n2 has %s, which n1 had a moment ago: %s", got, first)
	}
}

// Another ledger that is told what was freed does not give it either, until the minute is over. What should have been
// given again long ago, or has a time that can't be right, is as if it were freed now.
func TestFreedBeforeARestart(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.pause = 0
	w.clock = 1000
	w.put(node("n1", 1), node("n2", 2), pod("a", "n1"), pod("b", "n1"))
	w.drop(pod("a", "n1"), pod("b", "n1"), node("n2", 2))
	freed, over := w.ledger.TakeFreed()
	if len(freed) != 6 || len(over) != 0 {
		t.Fatalf("to be recorded: %v, %v, want 4 addresses and 2 subnets", freed, over)
	}
	if freed, _ := w.ledger.TakeFreed(); len(freed) != 0 {
		t.Errorf("recorded twice: %v", freed)
	}
	freed[own("10.0.0.5/32")] = 1 << 60
	freed[own("10.0.0.6/32")] = 5 // long ago
	w.clock = 1030
	again := w.restartedWith(freed)
	if news, _ := again.ledger.TakeFreed(); len(news) != 2 || news[own("10.0.0.5/32")] != 1030+freedFor ||
		news[own("10.0.0.6/32")] != 1030+freedFor {
		t.Errorf("to be recorded after a restart: %v, want 10.0.0.5 and 10.0.0.6 only", news)
	}
	again.put(pod("c", "n1"), node("n3", 3))
	again.address("c", "10.0.0.7 fd01::5")
	again.subnets("n3", "10.0.2.0/24 fd01:0:0:2::/64")
	again.wait(31)
	if _, over := again.ledger.TakeFreed(); len(over) != 6 {
		t.Errorf("over: %v, want all but 10.0.0.5 and 10.0.0.6", over)
	}
	if left := again.ledger.Freed(); len(left) != 2 || left[own("10.0.0.5/32")] != 1030+freedFor ||
		left[own("10.0.0.6/32")] != 1030+freedFor {
		t.Errorf("left: %v, want 10.0.0.5 and 10.0.0.6 until a minute after the start", left)
	}
}

// Each network has its own waiting time: the same subnet and address are free in another network, and those that wait
// in a network get theirs in time.
func TestFreedInSeveralNetworks(t *testing.T) {
	const subnets = "10.0.0.0/29/29,fd01::/64/64" // one node of three pods
	w := newWorld(t, subnets)
	w.state.AddNetwork(&cluster.Network{Name: "blue", Subnets: w.config.Subnets, JoinSubnets: w.config.JoinSubnets})
	w.ledger = New(w.state.Networks)
	w.pause = 0
	attached := func(name string) *cluster.Pod {
		p := pod(name, "n1")
		p.Attachments = []cluster.Attachment{{Network: "blue", Interface: "net1"}}
		return p
	}
	in := func(name string) string {
		ips := w.state.In("blue").PodNetworks[cluster.PodPort{Pod: podName(name), Interface: "net1"}].IPs
		if len(ips) == 0 {
			return ""
		}
		return ips[0].Addr().String()
	}
	w.update([]cluster.Event{{Ref: node("n1", 1).Ref(), New: node("n1", 1)}})
	for _, p := range []*cluster.Pod{attached("a"), attached("b"), attached("c")} {
		w.update([]cluster.Event{{Ref: p.Ref(), New: p}})
	}
	freed := in("a")
	alone := pod("a", "n1")
	w.update([]cluster.Event{{Ref: alone.Ref(), New: alone}}) // a leaves blue, and stays in the own network
	w.address("a", "10.0.0.3 fd01::3")
	w.update([]cluster.Event{{Ref: attached("a").Ref(), New: attached("a")}})
	if got := in("a"); freed == "" || got != "" {
		t.Fatalf("a has %q in blue again, which it gave back a moment ago: %q", got, freed)
	}
	want := names.Range{Network: "blue", Prefix: netip.MustParsePrefix(freed + "/32")}
	if put, _ := w.ledger.TakeFreed(); put[want] != freedFor || len(put) != 2 || !maps.Equal(put, w.ledger.Freed()) {
		t.Errorf("to be recorded: %v, want two addresses of blue, %s among them", put, freed)
	}
	if at, ok := w.ledger.NextFree(); !ok || at != freedFor {
		t.Errorf("looked at again at %d, %v, want %d", at, ok, freedFor)
	}
	w.wait(freedFor - 1)
	if got := in("a"); got != "" {
		t.Errorf("a has %q in blue too early", got)
	}
	w.wait(1)
	if got := in("a"); got != freed {
		t.Errorf("a has %q in blue after a minute, want %q", got, freed)
	}
}

// What a primary network freed is not given in it, also when another ledger is told that before it knows the network,
// and when the network was gone meanwhile. It is forgotten in time, also when there is no such network any more.
func TestFreedInAPrimaryNetwork(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.pause, w.clock = 0, 1000
	network := primary("red", "own", "10.77.0.0/28", "fd77::/64")
	pods := map[string]*cluster.Pod{}
	for _, name := range []string{"a", "b", "c"} {
		pods[name] = podIn("red", name, "n1")
	}
	has := func(w *world, name, want string) {
		t.Helper()
		port := cluster.PodPort{Pod: pods[name].Name, Interface: names.PrimaryInterface}
		got := strings.Trim(fmt.Sprint(w.state.In("red.own").PodNetworks[port].IPs), "[]")
		if got != want {
			t.Errorf("pod %s has %q, want %q", name, got, want)
		}
	}
	w.put(node("n1", 1), labelled("red", true), network, pods["a"])
	has(w, "a", "10.77.0.2/28 fd77::2/64")
	w.drop(pods["a"])
	freed, _ := w.ledger.TakeFreed()

	again := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	again.pause, again.clock = 0, 1010
	again.ledger.Advance(again.state, 1010)
	again.ledger.Keep(again.state, freed)
	again.put(node("n1", 1), labelled("red", true))
	again.put(network, pods["b"])
	has(again, "b", "10.77.0.3/28 fd77::3/64")
	again.drop(network)
	again.put(network)
	has(again, "b", "10.77.0.3/28 fd77::3/64")
	again.drop(pods["b"])
	again.put(pods["c"])
	has(again, "c", "10.77.0.4/28 fd77::4/64")

	again.drop(network)
	again.wait(2 * freedFor)
	again.ledger.TakeFreed()
	if left := again.ledger.Freed(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// In a network that the pods of all nodes share, the address of a pod whose Node is gone waits until a minute after the
// pod has ended, also after a restart: its machine may run on.
func TestFreedAddressOfADeletedNode(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
	w.pause, w.clock = 0, 1000
	a, b := podIn("red", "a", "n1"), podIn("red", "b", "n2")
	has := func(w *world, want string) {
		t.Helper()
		port := cluster.PodPort{Pod: b.Name, Interface: names.PrimaryInterface}
		if got := strings.Trim(fmt.Sprint(w.state.In("red.own").PodNetworks[port].IPs), "[]"); got != want {
			t.Errorf("pod b has %q, want %q", got, want)
		}
	}
	w.put(node("n1", 1), node("n2", 2), labelled("red", true), primary("red", "own", "10.77.0.0/30", "fd77::/64"), a)
	w.drop(node("n1", 1))
	w.wait(3 * freedFor)
	w.put(b)
	has(w, "")

	w.clock += 1000 // no master ran
	again := w.restarted()
	again.wait(3 * freedFor)
	has(again, "")
	freed := again.ledger.Freed()
	again.drop(a)
	again.wait(freedFor - 1)
	has(again, "")
	again.wait(1)
	has(again, "10.77.0.2/30 fd77::2/64")

	// The pod ended while no master ran.
	again.drop(b)
	again.clock += 1000
	late := again.restartedWith(freed)
	late.put(b)
	has(late, "")
	late.wait(freedFor)
	has(late, "10.77.0.2/30 fd77::2/64")
}

// The same if the namespace, with which the pod leaves its network, goes with the pod, or the Node comes back with it.
func TestFreedWithItsNamespace(t *testing.T) {
	address := names.Range{Network: "red.own", Prefix: netip.MustParsePrefix("10.77.0.2/32")}
	for what, with := range map[string]cluster.Event{
		"namespace": {Ref: labelled("red", true).Ref()},
		"Node":      {Ref: node("n1", 1).Ref(), New: node("n1", 1)},
	} {
		w := newWorld(t, "10.0.0.0/16/24,fd01::/48/64")
		w.pause, w.clock = 0, 1000
		a := podIn("red", "a", "n1")
		w.put(node("n1", 1), node("n2", 2), labelled("red", true), primary("red", "own", "10.77.0.0/30", "fd77::/64"), a)
		w.drop(node("n1", 1))
		w.wait(2*freedFor + 50)
		w.last = w.update([]cluster.Event{with, {Ref: a.Ref()}})
		w.wait(freedFor - 1)
		if freed := w.ledger.Freed(); freed[address] == 0 {
			t.Errorf("with its %s: the address of a pod that has just ended may be given: %v", what, freed)
		}
		w.wait(1)
		if freed := w.ledger.Freed(); len(freed) != 0 {
			t.Errorf("with its %s: a minute after the pod has ended, %v must not be given", what, freed)
		}
	}
}

// What is reserved is given to nobody, however long that lasts, and again at once when it is reserved no more.
func TestReserved(t *testing.T) {
	w := newWorld(t, "10.0.0.0/28/29,fd01::/63/64") // two nodes of three pods
	w.pause = 0
	w.put(node("n1", 1))
	w.ledger.Reserve([]names.Range{own("10.0.0.3/32"), own("fd01::4/128"), own("10.0.0.8/29"),
		{Network: "red.own", Prefix: netip.MustParsePrefix("10.0.0.4/32")}}) // that is another network's
	w.put(pod("a", "n1"), node("n2", 2))
	w.address("a", "10.0.0.4 fd01::3")
	w.subnets("n2", "")
	w.wait(2 * freedFor)
	w.put(pod("b", "n1"))
	w.address("b", "10.0.0.5 fd01::5")
	w.put(pod("c", "n1"))
	w.address("c", "")
	w.ledger.Reserve(nil)
	w.wait(1)
	w.address("c", "10.0.0.3 fd01::6")
	if got := fmt.Sprint(w.state.NodeSubnets["n2"]); !strings.Contains(got, "10.0.0.8/29") {
		t.Errorf("n2 has %s after the reservation, want 10.0.0.8/29", got)
	}
}
