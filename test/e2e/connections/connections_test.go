package connections

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/underlay"
)

// limit is how many connections of a pod are tracked at a time.
const limit = 50

// TestMaxPodConnections checks that a pod which opens more connections than it may gets no further. Others pay nothing:
// its neighbour, its node and a server on the other node connect as before.
func TestMaxPodConnections(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "connections", Nodes: 2, Gateways: 1, DualStack: true,
		MasterArgs: []string{fmt.Sprintf("--max-pod-connections=%d", limit)}})
	for name, node := range map[string]int{"greedy": 0, "neighbour": 0, "roamer": 0, "target": 1, "server": 1} {
		machines.Kubectl(t, c, "", "run", name, "--image=localhost/echo:1",
			`--overrides={"spec": {"nodeName": "`+c.Nodes[node].Spec.Name+`", "terminationGracePeriodSeconds": 0}}`)
	}
	machines.Kubectl(t, c, "", "expose", "pod", "target", "--port=80", "--target-port=8080")
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod", "--all")
	service := netip.AddrPortFrom(machines.Addresses(t, c, "service", "target", "{.spec.clusterIPs[*]}")[0], 80)
	machines.Eventually(t, "the Service answers", func(ctx context.Context) string {
		if got := machines.AskIn(ctx, c, "neighbour", "tcp", service); !strings.HasPrefix(got, "target ") {
			return "got " + got
		}
		return ""
	})
	if n := answers(t, c, "greedy", append(at(t, c, "target"), service)); n < limit/5 || n > limit {
		t.Errorf("%d of %d connections had an answer, want %d to %d", n, asked, limit/5, limit)
	}
	var away []netip.AddrPort
	for _, p := range (underlay.Families{DualStack: true}).Outside() {
		away = append(away, netip.AddrPortFrom(p.Addr(), 8080))
	}
	if n := answers(t, c, "roamer", away); n < limit/5 || n > limit {
		t.Errorf("%d of %d connections to the outside had an answer, want %d to %d", n, asked, limit/5, limit)
	}
	for _, to := range at(t, c, "server") {
		for from, ask := range map[string]func(context.Context) string{
			"the neighbour": func(ctx context.Context) string { return machines.AskIn(ctx, c, "neighbour", "tcp", to) },
			"the node":      func(ctx context.Context) string { return machines.AskOn(ctx, c.Nodes[0].Member, "tcp", to) },
		} {
			machines.Eventually(t, fmt.Sprintf("%s asks %s", from, to), func(ctx context.Context) string {
				if got := ask(ctx); !strings.HasPrefix(got, "server ") {
					return "got " + got
				}
				return ""
			})
		}
		if got := machines.AskIn(t.Context(), c, "greedy", "tcp", to); !machines.Dropped(got) {
			t.Errorf("the pod at its limit asks %s: %q, want no answer in time", to, got)
		}
	}
}

// at is where a pod serves.
func at(t *testing.T, c *sandbox.Cluster, pod string) (out []netip.AddrPort) {
	t.Helper()
	for _, ip := range machines.PodIPs(t, c, pod) {
		out = append(out, netip.AddrPortFrom(ip, 8080))
	}
	return out
}

// asked is how many connections answers opens.
const asked = 2 * limit

// answers has a pod open connections to these addresses by turns, and returns how many got an answer.
func answers(t *testing.T, c *sandbox.Cluster, pod string, to []netip.AddrPort) (n int) {
	t.Helper()
	var questions strings.Builder
	for i := range asked {
		fmt.Fprintln(&questions, "tcp", to[i%len(to)])
	}
	cmd, err := machines.EchoFrom(t.Context(), c, "default", pod, "questions", "2s")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(questions.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != asked {
		t.Fatalf("%d lines, want %d: %s", len(lines), asked, out)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "error: ") {
			n++
		}
	}
	return n
}
