package networks

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// client asks servers once. The answer is the server's name and the address that it sees, or what failed.
type client struct {
	name string
	ask  func(ctx context.Context, c *sandbox.Cluster, protocol string, to netip.AddrPort) string
}

func inPod(namespace, pod string) client {
	return client{"pod " + namespace + "/" + pod, func(ctx context.Context, c *sandbox.Cluster, protocol string,
		to netip.AddrPort) string {
		return machines.AskFrom(ctx, c, namespace, pod, protocol, to)
	}}
}

func onMachine(name string, m *member.Member) client {
	return client{name, func(ctx context.Context, _ *sandbox.Cluster, protocol string, to netip.AddrPort) string {
		return machines.AskOn(ctx, m, protocol, to)
	}}
}

// onHost is a host that hostIn has made.
func onHost(n *node.Node, host string) client {
	return client{"host " + host, func(ctx context.Context, _ *sandbox.Cluster, protocol string,
		to netip.AddrPort) string {
		out, err := n.Run(ctx, "ip", "netns", "exec", host, machines.Echo, "ask", protocol, to.String(), "1", "1s")
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return out
	}}
}

// at is a port at each address.
func at(addrs []netip.Addr, port uint16) (out []netip.AddrPort) {
	for _, a := range addrs {
		out = append(out, netip.AddrPortFrom(a, port))
	}
	return out
}

// everyWay has each client ask each address over TCP and UDP, all at once, and returns what is wrong with the answers.
func everyWay(ctx context.Context, c *sandbox.Cluster, from []client, to []netip.AddrPort,
	right func(answer string) bool) string {
	var checks []func() string
	for _, who := range from {
		for _, a := range to {
			for _, protocol := range []string{"tcp", "udp"} {
				checks = append(checks, func() string {
					if got := who.ask(ctx, c, protocol, a); !right(got) {
						return fmt.Sprintf("%s asks %s over %s, and gets %q", who.name, a, protocol, got)
					}
					return ""
				})
			}
		}
	}
	return machines.AtOnce(checks...)
}

// isFrom is true for an answer that begins with this, or for any other.
func isFrom(beginning string, so bool) func(string) bool {
	return func(answer string) bool { return strings.HasPrefix(answer, beginning) == so }
}

// answered is true for an answer of anybody, or for none.
func answered(so bool) func(string) bool {
	return func(answer string) bool { return strings.Contains(answer, "exit status") != so }
}

// noAnswer checks that none of the clients is answered by those whose name begins with this.
func noAnswer(t *testing.T, c *sandbox.Cluster, beginning string, to []netip.AddrPort, from ...client) {
	t.Helper()
	if wrong := everyWay(t.Context(), c, from, to, isFrom(beginning, false)); wrong != "" {
		t.Error(wrong)
	}
}

// late are questions to an address that a pod will have, or will not have.
type late struct {
	cmd    *exec.Cmd
	output strings.Builder
}

// askLate has a pod ask an address by UDP for ten seconds.
func askLate(t *testing.T, c *sandbox.Cluster, namespace, pod string, to netip.AddrPort) *late {
	t.Helper()
	cmd, err := machines.EchoFrom(t.Context(), c, namespace, pod, "ask", "udp", to.String(), "500", "20ms")
	l := &late{cmd: cmd}
	if err == nil {
		cmd.Stdout = &l.output
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// unanswered checks that all questions were asked, and none answered.
func (l *late) unanswered(t *testing.T) {
	t.Helper()
	err, text := l.cmd.Wait(), l.output.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err == nil || len(lines) != 500 || strings.Contains(text, "late") {
		t.Errorf("%v: %d questions, %v: want 500 and no answer: %.300s", l.cmd.Args, len(lines), err, text)
	}
}
