package networks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
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

// noAnswer checks that none of the clients is answered by those whose name begins with this.
func noAnswer(t *testing.T, c *sandbox.Cluster, beginning string, to []netip.AddrPort, from ...client) {
	t.Helper()
	if wrong := everyWay(t.Context(), c, from, to, isFrom(beginning, false)); wrong != "" {
		t.Error(wrong)
	}
}
