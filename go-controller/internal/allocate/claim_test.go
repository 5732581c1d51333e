package allocate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// patchedClaim is the event that a patch of an IPAMClaim leads to.
func (w *world) patchedClaim(o *cluster.IPAMClaim, p Patch) cluster.Event {
	w.t.Helper()
	if p.UID != o.UID || p.Claim.Found != o.Status {
		w.t.Fatalf("patch %v of %s %s", p, o.Name, o.UID)
	}
	c := *o
	if c.Own = p.Claim.Condition; c.Own.True {
		c.IPs, c.Pod = p.Claim.IPs, p.Claim.Pod
	}
	c.Status = fmt.Sprint(c.IPs, c.Pod, c.Own)
	return cluster.Event{Ref: p.Ref, New: &c}
}

// keeping is the network lan, in which IPAMClaims keep addresses.
func keeping(subnets ...string) *cluster.NetworkDefinition {
	d := lan("", subnets...)
	d.Network.Persistent = true
	return d
}

func claimed(name string) *cluster.IPAMClaim {
	return &cluster.IPAMClaim{Name: podName(name), UID: "uid-claim-" + name, Network: "lan"}
}

// claiming is a pod that refers to an IPAMClaim, made as one more of its name.
func claiming(name, node, claim string, made int) *cluster.Pod {
	p := asking(name, node, "")
	p.Attachments[0].Asked.Claim = claim
	p.UID = fmt.Sprint("uid-", name, "-", made)
	return p
}

// keeps checks what the status of an IPAMClaim has.
func (w *world) keeps(name, want string) {
	w.t.Helper()
	c := w.state.IPAMClaims[podName(name)]
	if got := strings.Trim(fmt.Sprint(ipnet.Addrs(c.IPs)), "[]") + " of " + c.Pod; got != want {
		w.t.Errorf("claim %s has %s, want %s", name, got, want)
	}
}

// A claim keeps the addresses of the first pod for all others that refer to it, one after the other, on any node.
func TestClaim(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/29", "fd99::/64"), claimed("vm"))
	w.result(2)
	w.put(claiming("a", "n1", "vm", 1))
	w.inLAN(map[string]string{"a": "10.99.0.1 fd99::1"})
	w.keeps("vm", "10.99.0.1 fd99::1 of a")
	w.put(claiming("b", "n2", "vm", 1))
	w.result(1, "IPAMClaim default/vm is in use by Pod default/a: the pod waits for it")
	w.inLAN(map[string]string{"b": ""})
	w.drop(claiming("a", "n1", "vm", 1))
	w.inLAN(map[string]string{"b": "10.99.0.1 fd99::1"})
	w.keeps("vm", "10.99.0.1 fd99::1 of b")
	w.drop(claiming("b", "n2", "vm", 1))
	for i := range 6 { // nobody else gets them
		w.put(asking(fmt.Sprint("x", i), "n1", ""))
	}
	w.result(1, "no address is free in subnet 10.99.0.0/29")
	w.put(asking("thief", "n1", "10.99.0.1"))
	w.result(1, "10.99.0.1/29 is already the address of IPAMClaim default/vm")
	w.drop(asking("thief", "n1", ""), asking("x5", "n1", ""))
	again := w.restarted()
	again.result(0)
	for _, world := range []*world{w, again} {
		world.put(claiming("a", "n2", "vm", 2))
		world.inLAN(map[string]string{"a": "10.99.0.1 fd99::1"})
		world.keeps("vm", "10.99.0.1 fd99::1 of a")
	}
	third := again.restarted() // while a pod has them
	third.result(0)
	third.drop(claiming("a", "n2", "vm", 2))
	third.put(claiming("c", "n1", "vm", 1))
	third.inLAN(map[string]string{"c": "10.99.0.1 fd99::1"})
}

// What a claim kept is free once it is gone, after the usual time. A pod that has the addresses keeps them.
func TestClaimThatGoes(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.pause = 1
	w.put(node("n1", 1), keeping("10.99.0.0/30"), claimed("vm"), claiming("a", "n1", "vm", 1))
	w.keeps("vm", "10.99.0.1 of a")
	w.put(asking("b", "n1", ""))
	w.drop(claimed("vm"))
	w.inLAN(map[string]string{"a": "10.99.0.1", "b": "10.99.0.2"})
	w.restarted().inLAN(map[string]string{"a": "10.99.0.1", "b": "10.99.0.2"})
	w.put(claimed("vm")) // the pod still refers to it
	w.keeps("vm", "10.99.0.1 of a")
	w.drop(claiming("a", "n1", "vm", 1))
	w.put(asking("c", "n1", ""))
	w.inLAN(map[string]string{"c": ""})
	w.drop(claimed("vm"))
	w.inLAN(map[string]string{"c": ""})
	w.clock += freedFor
	w.put(node("n9", 9))
	w.inLAN(map[string]string{"c": "10.99.0.1"})
	w.put(claiming("d", "n1", "vm", 1))
	w.result(1, "there is no IPAMClaim default/vm: the pod waits for it")
}

// A running pod that comes to refer to another claim keeps its addresses as those of the first one. So the other claim
// has no part in them, neither when it goes nor when the pod does.
func TestClaimOfAnotherClaimsAddresses(t *testing.T) {
	for _, podFirst := range []bool{true, false} {
		w := newWorld(t, "10.0.0.0/16/24")
		w.put(node("n1", 1), keeping("10.99.0.0/29"), claimed("vm"), claiming("a", "n1", "vm", 1))
		moved := *w.state.Pods[podName("a")]
		moved.Attachments = slices.Clone(moved.Attachments)
		moved.Attachments[0].Asked.Claim = "other"
		w.put(&moved, claimed("other"))
		w.keeps("vm", "10.99.0.1 of a")
		w.keeps("other", " of ")
		if podFirst {
			w.drop(&moved)
		}
		w.drop(claimed("other"))
		if !podFirst {
			w.drop(&moved)
		}
		w.clock += freedFor
		w.put(asking("thief", "n1", "10.99.0.1"))
		w.result(1, "10.99.0.1/29 is already the address of IPAMClaim default/vm")
		w.put(claiming("b", "n1", "vm", 1))
		w.inLAN(map[string]string{"b": "10.99.0.1", "thief": ""})
	}
}

// A claim that can't be met is reported, and so is a pod that refers to one that is about something else.
func TestClaimThatIsRefused(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	taken, other, bad, wish := claimed("taken"), claimed("other"), claimed("bad"), claimed("wish")
	taken.IPs, other.Network, bad.Invalid = prefixes("10.99.0.1/24"), "wan", "status.ips: x"
	wish.Asked = prefixes("10.99.0.77/24")
	w.put(node("n1", 1), keeping("10.99.0.0/24"), asking("a", "n1", ""))
	w.put(taken, other, bad, wish)
	w.result(1, "ClaimRefused: default.lan: status.ips: 10.99.0.1/24 is already the address of Pod default/a: pods")
	for _, c := range []struct {
		claim   string
		patches int
		want    string
	}{
		{"taken", 1, "IPAMClaim default/taken: status.ips: 10.99.0.1/24 is already the address of Pod default/a"},
		{"other", 1, `IPAMClaim default/other: spec.network is "wan", want that of the interface, default.lan`},
		{"bad", 2, "IPAMClaim default/bad: status.ips: x"}, // its status says so, too
	} {
		w.put(claiming("b", "n1", c.claim, 1))
		w.result(c.patches, c.want)
		w.drop(claiming("b", "n1", c.claim, 1))
	}
	w.put(claiming("w", "n1", "wish", 1))
	w.inLAN(map[string]string{"w": "10.99.0.77"})
	w.put(claiming("b", "n1", "taken", 1))
	w.drop(asking("a", "n1", ""))
	w.inLAN(map[string]string{"b": "10.99.0.1"})
	static := claiming("s", "n1", "wish", 1)
	static.Attachments[0].Asked.IPv4 = netip.MustParsePrefix("10.99.0.8/24")
	w.drop(claiming("w", "n1", "wish", 1))
	w.put(static)
	w.result(1, "10.99.0.8 is not the address 10.99.0.77 of IPAMClaim default/wish, which the pod refers to")
	w.put(lan("", "10.99.0.0/24"), claiming("late", "n1", "wish", 1))
	w.inLAN(map[string]string{"b": "10.99.0.1"}) // it had them before
	w.waits("late", "the network keeps no addresses for IPAMClaims, want one with ipam.lifecycle Persistent")
}

// A claim without addresses says why, once, and no longer when it has some.
func TestClaimSaysWhatItLacks(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.put(node("n1", 1), keeping("10.99.0.0/30"), asking("a", "n1", "10.99.0.1"), claimed("vm"), claimed("mac"))
	says := func(claim, want string) {
		t.Helper()
		own := w.state.IPAMClaims[podName(claim)].Own
		if got := fmt.Sprintf("%v %s %s", own.True, own.Reason, own.Message); got != want {
			t.Errorf("claim %s says %s, want %s", claim, got, want)
		}
	}
	says("vm", "false  ")
	static := claiming("s", "n1", "vm", 1)
	static.Attachments[0].Asked.IPv4 = netip.MustParsePrefix("10.99.0.1/30")
	w.put(static)
	says("vm", "false IPAddressConflict 10.99.0.1/30 is already the address of Pod default/a")
	w.drop(static)
	w.put(asking("b", "n1", ""), claiming("v", "n1", "vm", 1))
	says("vm", "false SubnetExhausted no address is free in subnet 10.99.0.0/30")
	again := w.restarted()
	again.result(0, "no address is free in subnet 10.99.0.0/30") // of the pod; the claim says it already
	w.drop(asking("b", "n1", ""))
	w.inLAN(map[string]string{"v": "10.99.0.2"})
	says("vm", "true SuccessfulAllocation the claim has addresses")
	w.drop(asking("a", "n1", ""))
	holder, second := asking("h", "n1", ""), claiming("m", "n1", "mac", 1)
	holder.Attachments[0].Asked.MAC = ipnet.MAC{2, 0, 0, 0, 0, 5}
	second.Attachments[0].Asked.MAC = holder.Attachments[0].Asked.MAC
	w.put(holder, second)
	says("mac", "false MACAddressConflict 02:00:00:00:00:05 is already the MAC of Pod default/h")
	outside := claimed("outside")
	outside.Asked = prefixes("10.98.0.7/24")
	w.put(outside, claiming("o", "n1", "outside", 1))
	says("outside", "false ClaimRefused 10.98.0.7 is in none of the subnets [10.99.0.0/30]")
}

// A claim of a primary network.
func TestClaimOfPrimaryNetwork(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	own := primary("red", "own", "10.77.0.0/16")
	own.Network.Persistent = true
	claim := claimed("vm")
	claim.Name, claim.Network = cluster.Name{Namespace: "red", Name: "vm"}, "red_own"
	a := preferring("red", "a", "n1")
	a.Preferred.Claim = "vm"
	w.put(node("n1", 1), node("n2", 2), labelled("red", true), own, claim, podIn("red", "first", "n1"))
	w.put(a)
	w.toldOf(a, `"10.77.0.3/16"`)
	w.drop(a)
	b := preferring("red", "b", "n2")
	b.Preferred.Claim = "vm"
	w.put(b)
	w.toldOf(b, `"10.77.0.3/16"`)
	w.drop(own)
	w.put(own, podIn("red", "c", "n1"))
	w.toldOf(b, `"10.77.0.3/16"`)
	again := w.restarted()
	again.result(0)
	again.toldOf(b, `"10.77.0.3/16"`)
}

// TestClaimProperties has claims, pods and the network come and go. A claim's addresses do not change while it and its
// network are there, and nobody has what another has. A ledger that is rebuilt grants the same, and writes nothing.
func TestClaimProperties(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, "10.0.0.0/16/26")
		r := rand.New(rand.NewPCG(seed, 67))
		w.put(node("n0", 1), node("n1", 1), keeping("10.99.0.0/28"))
		kept := map[string]string{} // by UID of the claim
		for step := range 300 {
			var o cluster.Object
			switch r.IntN(10) {
			case 0, 1:
				c := claimed(fmt.Sprint("c", r.IntN(5)))
				if old := w.state.IPAMClaims[c.Name]; old != nil && r.IntN(5) > 0 {
					continue
				}
				c.UID = fmt.Sprint(c.UID, "-", step)
				o = c
			case 2:
				o = asking(fmt.Sprint("x", r.IntN(4)), fmt.Sprint("n", r.IntN(2)), "")
			default:
				p := claiming(fmt.Sprint("p", r.IntN(6)), fmt.Sprint("n", r.IntN(2)), fmt.Sprint("c", r.IntN(5)), step)
				machine := r.IntN(4)
				if machine > 0 {
					p = inPod(fmt.Sprint("m", machine), p)
				}
				p.Created = int64(step)
				if machine > 1 {
					p.Attachments[0].Asked.MAC = ipnet.MAC{2, 4: byte(machine), 5: p.Attachments[0].Asked.Claim[1]}
				}
				o = p
				if old := w.state.Pods[o.Ref().Name]; old != nil && r.IntN(3) == 0 { // somebody writes another label
					relabelled := *old
					o = inPod(fmt.Sprint("m", r.IntN(3)), &relabelled)
				} else if old != nil {
					w.drop(old)
				}
			}
			if r.IntN(3) == 0 {
				w.drop(o)
			} else {
				w.put(o)
			}
			w.checkClaims(kept)
		}
		again := w.restarted()
		if len(again.last.Patches) > 0 {
			t.Errorf("seed %d: a restart writes %v", seed, again.last.Patches)
		}
		was, is := w.state.In("default.lan").PodNetworks, again.state.In("default.lan").PodNetworks
		if fmt.Sprint(was) != fmt.Sprint(is) {
			t.Errorf("seed %d: %v, and after a restart %v", seed, was, is)
		}
	}
}

// checkClaims checks that claims have what they had, and that nobody else has it.
func (w *world) checkClaims(kept map[string]string) {
	w.t.Helper()
	owner := map[netip.Addr]string{}
	for _, c := range w.state.IPAMClaims {
		has := fmt.Sprint(c.IPs)
		if before, known := kept[c.UID]; known && before != has && before != "[]" {
			w.t.Fatalf("claim %s had %s, and has %s", c.Name, before, has)
		}
		kept[c.UID] = has
		for _, a := range ipnet.Addrs(c.IPs) {
			if owner[a] != "" {
				w.t.Fatalf("claims %s and %s have %s", owner[a], c.Name.Name, a)
			}
			owner[a] = c.Name.Name
		}
	}
	holders := map[netip.Addr][]cluster.Name{}
	for p, net := range w.state.In("default.lan").PodNetworks {
		claim := w.state.Pods[p.Pod].Attachments[0].Asked.Claim
		for _, a := range ipnet.Addrs(net.IPs) {
			for _, other := range holders[a] {
				if len(holders[a]) > 1 || !w.state.Pods[other].SameMachine(w.state.Pods[p.Pod]) || claim == "" {
					w.t.Fatalf("pods %s and %s have %s", holders[a], p.Pod, a)
				}
			}
			holders[a] = append(holders[a], p.Pod)
			if owner[a] != "" && owner[a] != claim {
				w.t.Fatalf("pod %s has %s of claim %s", p.Pod, a, owner[a])
			}
			if w.state.IPAMClaims[podName(claim)] != nil && owner[a] != claim && claim != "" {
				w.t.Fatalf("pod %s has %s, and claim %s does not", p.Pod, a, claim)
			}
		}
	}
}
