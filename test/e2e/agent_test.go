package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	testbed "github.com/northbound-net/northbound/test/sandbox"
)

// steadyStreams are pings between pods and nodes, 100 packets a second each.
func steadyStreams(t *testing.T) []*machines.Stream {
	t.Helper()
	apply(t, deployment("steady", 4))
	ps := readyPods(t, "steady", 4)
	here := on(t, ps, "n1")
	there := on(t, ps, "n2")
	must(t, "exec", here.Name, "--", "ping", "-c3", there.IPs[0])
	must(t, "exec", here.Name, "--", "ping", "-c3", there.IPs[1])
	must(t, "node", "n2", "--", "ping", "-c3", here.IPs[0])
	const interval = "0.01"
	start := func(what string, args ...string) *machines.Stream {
		return machines.StartStream(t, what, func(ctx context.Context) *exec.Cmd { return command(ctx, args...) })
	}
	return []*machines.Stream{
		start("pod on n1 to pod on n2", "exec", here.Name, "--", "ping", "-i", interval, there.IPs[0]),
		start("pod on n1 to pod on n2, IPv6", "exec", here.Name, "--", "ping", "-i", interval, there.IPs[1]),
		start("n1 to its pod", "node", "n1", "--", "ping", "-n", "-i", interval, here.IPs[0]),
		start("n2 to the pod on n1", "node", "n2", "--", "ping", "-n", "-i", interval, here.IPs[0]),
	}
}

// TestRestartsLoseNoPacket checks that running pods need none of the parts that are killed and started again. For
// ovn-controller that holds because the agent has it keep the flows for a while.
func TestRestartsLoseNoPacket(t *testing.T) {
	streams := steadyStreams(t)
	for _, part := range []string{"master", "northd", "sb", "nb", "n1/ovn-controller", "n2/ovn-controller"} {
		t.Run(part, func(t *testing.T) {
			machines.MoreReplies(t, streams, 50)
			must(t, "restart", "--kill", part)
			machines.MoreReplies(t, streams, 800) // longer than ovn-controller keeps flows that nobody wants
			machines.NoGaps(t, streams)
		})
	}
}

// TestAgentRestartLosesNoPacket checks that running pods do not need the node agent. No packet is lost while the agent
// is stopped or killed, while it is down, and while it starts again. The new agent has nothing to change.
func TestAgentRestartLosesNoPacket(t *testing.T) {
	streams := steadyStreams(t)
	for _, signal := range []string{"TERM", "KILL"} {
		machines.MoreReplies(t, streams, 100)
		former := agentPID(t, "n1")
		must(t, "node", "n1", "--", "kill", "-"+signal, former)
		eventually(t, "the agent has ended", func() string { return stillRuns(t, former) })
		machines.MoreReplies(t, streams, 100)
		if !onChart() { // there the kubelet starts it
			must(t, "restart", "n1/ovnkube-node")
		}
		agentReady(t)
		machines.MoreReplies(t, streams, 100)
		if out := must(t, "metrics", "n1"); strings.Contains(out, "northbound_node_changes_total{") {
			t.Errorf("after %s the new agent changed something:\n%s", signal, out)
		}
	}
	machines.NoGaps(t, streams)
}

// on returns the first of the pods on the node.
func on(t *testing.T, ps []pod, node string) pod {
	t.Helper()
	for _, p := range ps {
		if p.Node == node {
			return p
		}
	}
	t.Fatalf("no pod on %s", node)
	return pod{}
}

// agentPID is the process id of a node's agent, in the node's PID namespace; "" if it does not run.
func agentPID(t *testing.T, node string) string {
	t.Helper()
	c, err := testbed.Open(testbed.DefaultStateRoot, name)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := c.PID(t.Context(), node+"/ovnkube-node")
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// stillRuns is the process id of the agent of n1 if it is this one, and "" if that has ended.
func stillRuns(t *testing.T, pid string) string {
	t.Helper()
	if agentPID(t, "n1") != pid {
		return ""
	}
	return pid
}

// agentPod is the chart's pod with a node's agent.
func agentPod(t *testing.T, node string) string {
	t.Helper()
	return kubectl(t, "--namespace", testbed.Namespace, "get", "pods", "--selector", "app=ovnkube-node",
		"--field-selector", "spec.nodeName="+node, "--output", "name")
}

// TestDoctor checks that the doctor finds no problem on a healthy node, with the agent's flags, and that it finds a
// fault.
func TestDoctor(t *testing.T) {
	args := strings.Split(strings.TrimSuffix(must(t, "node", "n1", "--", "cat", "/proc/"+agentPID(t, "n1")+"/cmdline"),
		"\x00"), "\x00")
	examine := func(more ...string) (string, error) {
		command := []string{"node", "n1", "--"}
		if onChart() { // with the environment of the agent
			command = []string{"kubectl", "--namespace", testbed.Namespace, "exec", agentPod(t, "n1"), "--container", "agent",
				"--"}
		}
		return sandbox(t.Context(), slices.Concat(command, []string{"ovnkube", "doctor"}, args[2:], more)...)
	}
	eventually(t, "a healthy node", func() string {
		out, err := examine()
		if err != nil || !strings.Contains(out, "node n1: no problems, 3 of ") {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
	want := []string{`"check": "path-mtu"`, `has an MTU of 1500, packets may have 1558 bytes`}
	if onChart() { // its master publishes an MTU, which the doctor's flag contradicts
		want = []string{"--mtu 1500: the master runs with 1400"}
	}
	out, err := examine("-o", "json", "--metrics-bind-address", "127.0.0.1:1", "--mtu", "1500")
	if err == nil || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out+err.Error(), w) }) {
		t.Errorf("pods with the underlay's MTU are no problem: %v\n%s\nwant %q", err, out, want)
	}
}
