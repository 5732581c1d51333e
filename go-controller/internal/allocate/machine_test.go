package allocate

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// running is a pod in which a virtual machine runs, and whose address a claim keeps.
func running(machine, name, node string) *cluster.Pod {
	return inPod(machine, claiming(name, node, "vm", 1))
}

func inPod(machine string, p *cluster.Pod) *cluster.Pod {
	p.Labels = cluster.NewLabels(map[string]string{annotation.MachineLabel: machine})
	return p
}

// A virtual machine that moves has the claim's addresses in both pods, whichever of them goes first, and after a
// restart as well. A third pod waits, and so does one of another machine.
func TestMachineMoves(t *testing.T) {
	const addrs = "10.99.0.1 fd99::1"
	for _, goes := range []string{"a", "b"} {
		w := newWorld(t, "10.0.0.0/16/24")
		w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/29", "fd99::/64"), claimed("vm"))
		w.put(running("m", "a", "n1"))
		w.put(running("other", "x", "n2"))
		w.result(1, "IPAMClaim default/vm is in use by Pod default/a: the pod waits for it")
		w.put(running("m", "b", "n2"))
		w.result(1)
		w.put(running("m", "c", "n2"))
		w.result(1, "IPAMClaim default/vm is in use by Pod default/a: the pod waits for it")
		w.inLAN(map[string]string{"a": addrs, "b": addrs, "c": "", "x": ""})
		w.keeps("vm", addrs+" of a")
		again := w.restarted()
		again.result(0, "in use by Pod default/a", "in use by Pod default/a")
		for _, world := range []*world{w, again} {
			stays := map[string]string{"a": "b", "b": "a"}[goes]
			node := map[string]string{"a": "n1", "b": "n2"}[goes]
			world.drop(running("m", goes, node))
			world.inLAN(map[string]string{stays: addrs, "c": addrs, "x": ""})
			world.drop(running("m", "c", "n2"))
			world.inLAN(map[string]string{stays: addrs, "x": ""})
			world.keeps("vm", addrs+" of "+stays)
			third := world.restarted()
			third.result(0, "in use by Pod default/"+stays)
			third.put(asking("y", "n1", ""))
			third.inLAN(map[string]string{stays: addrs, "y": "10.99.0.2 fd99::2"})
		}
	}
}

// A claim that goes while a machine moves leaves both pods the addresses. They are free when both are gone.
func TestClaimThatGoesWhileAMachineMoves(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	w.pause = 1
	w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/30"), claimed("vm"), running("m", "a", "n1"))
	w.put(running("m", "b", "n2"))
	w.drop(claimed("vm"))
	again := w.restarted()
	again.result(0)
	for _, world := range []*world{w, again} {
		world.pause = 1
		world.inLAN(map[string]string{"a": "10.99.0.1", "b": "10.99.0.1"})
		world.drop(running("m", "a", "n1"))
		world.put(asking("x", "n1", ""), asking("y", "n1", ""))
		world.inLAN(map[string]string{"b": "10.99.0.1", "x": "10.99.0.2", "y": ""})
		world.drop(running("m", "b", "n2"))
		world.clock += freedFor
		world.put(node("n9", 9))
		world.inLAN(map[string]string{"y": "10.99.0.1"})
	}
}

// In a network without subnets, the machine's pods ask for one MAC and one address.
func TestMachineMovesWithoutSubnets(t *testing.T) {
	asks := func(machine, name, node string) *cluster.Pod {
		p := inPod(machine, asking(name, node, "10.1.0.50/24"))
		p.Attachments[0].Asked.MAC = ipnet.MAC{0x02, 5: 0x50}
		return p
	}
	for _, goes := range []string{"a", "b"} {
		w := newWorld(t, "10.0.0.0/16/24")
		w.put(node("n1", 1), node("n2", 2), lan(""), asks("m", "a", "n1"))
		w.put(asks("other", "x", "n2"))
		w.result(1, "is already the MAC of Pod default/a")
		w.put(asks("m", "b", "n2"))
		w.result(1)
		again := w.restarted()
		again.result(0, "is already the MAC of Pod default/a")
		for _, world := range []*world{w, again} {
			world.inLAN(map[string]string{"a": "10.1.0.50", "b": "10.1.0.50", "x": ""})
			stays := map[string]string{"a": "b", "b": "a"}[goes]
			world.drop(asks("m", goes, map[string]string{"a": "n1", "b": "n2"}[goes]))
			world.inLAN(map[string]string{stays: "10.1.0.50", "x": ""})
			world.drop(asks("m", stays, map[string]string{"a": "n1", "b": "n2"}[stays]))
			world.inLAN(map[string]string{"x": "10.1.0.50"})
		}
	}
}

// A claim keeps addresses that the first pod has chosen, and a pod that is made anew has the MAC that both ask for.
func TestClaimOfChosenAddresses(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	asks := func(name, node string) *cluster.Pod {
		p := claiming(name, node, "vm", 1)
		p.Attachments[0].Asked.IPv4 = prefixes("10.99.0.77/24")[0]
		p.Attachments[0].Asked.MAC = ipnet.MAC{0x02, 5: 0x77}
		return p
	}
	w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/24", "fd99::/64"), claimed("vm"), asks("a", "n1"))
	has := map[string]string{"a": "10.99.0.77 fd99::1"}
	w.inLAN(has)
	w.drop(asks("a", "n1"))
	again := w.restarted()
	for _, world := range []*world{w, again} {
		world.put(asking("x", "n1", ""), asks("a", "n2"))
		world.inLAN(has)
		mac := world.state.In("default.lan").PodNetworks[cluster.PodPort{Pod: podName("a"), Interface: "net1"}].MAC
		if mac != (ipnet.MAC{0x02, 5: 0x77}) {
			t.Errorf("the pod has the MAC %s, want the one that it asks for", mac)
		}
	}
}

// Pods of one machine that ask for different MACs do not share addresses: both ports would work.
func TestMachineWithTwoMACs(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	other := running("m", "b", "n2")
	other.Attachments[0].Asked.MAC = ipnet.MAC{0x02, 5: 0x50}
	w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/29"), claimed("vm"), running("m", "a", "n1"))
	w.put(other)
	w.result(1, "IPAMClaim default/vm is in use by Pod default/a: the pod waits for it")
	without := newWorld(t, "10.0.0.0/16/24")
	without.put(node("n1", 1), node("n2", 2), lan(""), inPod("m", asking("a", "n1", "10.1.0.50/24")))
	without.put(inPod("m", asking("b", "n2", "10.1.0.50/24"))) // whose MACs are made for each
	without.result(1, "10.1.0.50 is already the address of Pod default/a")
}

// When the label of one of the two pods changes, the younger has nothing any more, and nobody else gets what the older
// has, whatever happens next.
func TestMachineThatIsRenamedWhileItMoves(t *testing.T) {
	for _, renamed := range []string{"a", "b"} {
		w := newWorld(t, "10.0.0.0/16/24")
		pods := map[string]*cluster.Pod{"a": running("m", "a", "n1"), "b": running("m", "b", "n2")}
		pods["b"].Created = 1
		w.put(node("n1", 1), node("n2", 2), keeping("10.99.0.0/29"), claimed("vm"), pods["a"])
		w.put(pods["b"])
		w.inLAN(map[string]string{"a": "10.99.0.1", "b": "10.99.0.1"})
		changed := *w.state.Pods[podName(renamed)]
		w.put(inPod("another", &changed))
		w.result(1, "in use by Pod default/a: it is written anew", "in use by Pod default/a: the pod waits for it")
		again := w.restarted()
		again.result(0, "in use by Pod default/a")
		for _, world := range []*world{w, again} {
			world.inLAN(map[string]string{"a": "10.99.0.1", "b": ""})
			third := running("another", "c", "n2")
			third.Created = 2
			world.put(third)
			world.drop(claimed("vm"))
			world.put(asking("x", "n1", ""))
			world.inLAN(map[string]string{"a": "10.99.0.1", "b": "", "x": "10.99.0.2"})
			if len(world.state.In("default.lan").Moves) != 2*map[string]int{"a": 1, "b": 0}[renamed] {
				t.Errorf("%s renamed: these move: %v", renamed, world.state.In("default.lan").Moves)
			}
		}
	}
}
