package networks

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// arrived is what KubeVirt writes to the pod that a running virtual machine moves to, when the machine works there.
const arrived = "kubevirt.io/migration-target-ready-timestamp=2026-11-30T10:00:00Z"

// vmPod is a pod as KubeVirt makes it for a virtual machine: its addresses are those of two claims, and its label names
// the machine.
func vmPod(name, node string) string {
	return claimant("vm", name, node, "app: kept, vm.kubevirt.io/name: vm")
}

// unasked counts the datagrams to a pod for a port that nobody listens on (Linux, /proc/net/snmp, NoPorts).
func unasked(t *testing.T, c *sandbox.Cluster, pod string) string {
	t.Helper()
	text := machines.Kubectl(t, c, "", "exec", "-n", "green", pod, "--", "cat", "/proc/net/snmp")
	_, numbers, _ := strings.Cut(text[strings.Index(text, "\nUdp:")+1:], "\nUdp:")
	fields := strings.Fields(numbers)
	if len(fields) < 2 {
		t.Fatalf("/proc/net/snmp of %s: %q, want two lines of Udp", pod, text)
	}
	return fields[1]
}

// sends tells whether a datagram of a pod reaches another one, on the interface net1.
func sends(t *testing.T, c *sandbox.Cluster, from, to string) bool {
	t.Helper()
	before := unasked(t, c, to)
	machines.AskFrom(t.Context(), c, "green", from, "udp", netip.AddrPortFrom(on(t, c, "green", to, "net1")[0], 9))
	return unasked(t, c, to) != before
}

// pinging pings an address of net1 a hundred times a second until the test ends.
func pinging(t *testing.T, c *sandbox.Cluster, from string, to netip.Addr) *machines.Stream {
	t.Helper()
	s, end, err := machines.NewStream(from+" to "+to.String(), func(ctx context.Context) *exec.Cmd {
		cmd, err := c.PodNetworkCommand(ctx, "green", from, "ping", "-n", "-i", "0.01", to.String())
		if err != nil {
			t.Fatal(err)
		}
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return s
}

// freeze has a pod open connections to green-1 and to the pod peer, and takes them from the kernel, as the memory of a
// virtual machine has them. The other ends notice nothing.
func freeze(t *testing.T, c *sandbox.Cluster, pod string) (connections []string) {
	t.Helper()
	for to, link := range map[string]string{"green-1": "ovn-udn1", "peer": "net1"} {
		for _, a := range on(t, c, "green", to, link) {
			connections = append(connections, echo(t, c, pod, "freeze", netip.AddrPortFrom(a, 8080).String()))
		}
	}
	return connections
}

// thaw has another pod of the same machine go on with connections.
func thaw(t *testing.T, c *sandbox.Cluster, pod string, connections []string) {
	t.Helper()
	for _, connection := range connections {
		if answer := echo(t, c, pod, "thaw", connection); !strings.HasPrefix(answer, "green-1 ") &&
			!strings.HasPrefix(answer, "peer ") {
			t.Errorf("%s goes on with %s, and gets %q", pod, connection, answer)
		}
	}
}

// echo runs the tests' client in the network of a pod of the tenant green.
func echo(t *testing.T, c *sandbox.Cluster, pod string, args ...string) string {
	t.Helper()
	cmd, err := machines.EchoFrom(t.Context(), c, "green", pod, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s in pod %s: %v: %s", machines.Echo, args, pod, err, out)
	}
	return string(out)
}

// tryMachine has a virtual machine move from node to node, in a primary network and in another. Pods stand for the
// machine: KubeVirt makes such pods, and here the test writes what KubeVirt would. Each answers by its own name. TCP
// connections of the machine move with it.
func tryMachine(t *testing.T, c *sandbox.Cluster) {
	apply(t, c, fmt.Sprintf(claims, "vm")+vmPod("vm-1", "n1"), "green", "vm-1")
	links := []string{"ovn-udn1", "net1"}
	addrs := func(pod string) (out [][]netip.Addr) {
		for _, link := range links {
			out = append(out, on(t, c, "green", pod, link))
		}
		return out
	}
	has := addrs("vm-1")
	runsIn := func(pod string) {
		t.Helper()
		for i, from := range []string{"green-1", "peer"} {
			answers(t, c, "green", from, pod, has[i])
		}
	}
	remove := func(pod string) {
		machines.Kubectl(t, c, "", "delete", "pod", "-n", "green", pod, "--timeout=60s")
	}
	runsIn("vm-1")
	apply(t, c, vmPod("vm-2", "n2"), "green", "vm-2")
	if now := addrs("vm-2"); fmt.Sprint(now) != fmt.Sprint(has) {
		t.Errorf("the second pod has %v, want %v, which the first one has", now, has)
	}
	runsIn("vm-1")
	for pod, want := range map[string]bool{"vm-1": true, "vm-2": false} {
		if got := sends(t, c, pod, "peer"); got != want {
			t.Errorf("while the machine runs in vm-1, packets of %s arrive: %v, want %v", pod, got, want)
		}
	}
	remove("vm-2") // the move has failed
	runsIn("vm-1")
	apply(t, c, vmPod("vm-3", "n2"), "green", "vm-3")
	runsIn("vm-1")
	for _, to := range has[1] {
		stream := pinging(t, c, "peer", to)
		defer func() { t.Log("through two moves: ", stream) }()
	}
	frozen := freeze(t, c, "vm-1")
	machines.Kubectl(t, c, "", "annotate", "pod", "-n", "green", "vm-3", arrived)
	runsIn("vm-3")
	thaw(t, c, "vm-3", frozen)
	if err := c.Restart(t.Context(), "master", unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, c)
	runsIn("vm-3")
	remove("vm-1")
	runsIn("vm-3")
	for _, claim := range []string{"vm.own", "vm.disks"} {
		machines.Kubectl(t, c, "", "wait", "-n", "green", "ipamclaim/"+claim, "--timeout=20s",
			"--for", "jsonpath={.status.ownerPod.name}=vm-3")
	}
	apply(t, c, vmPod("vm-4", "n1"), "green", "vm-4") // the next move
	runsIn("vm-3")
	machines.Kubectl(t, c, "", "annotate", "pod", "-n", "green", "vm-4", arrived)
	runsIn("vm-4")
	remove("vm-3")
	runsIn("vm-4")
	remove("vm-4")
}
