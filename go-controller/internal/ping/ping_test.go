package ping

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The length tells pings apart, and an address without a host does not reply.
func TestPing(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.Run(t, "sh", "-ec", `ip netns add peer; ip link add v0 type veth peer name v1 netns peer
		ip addr add 10.9.0.1/24 dev v0; ip addr add fd09::1/64 dev v0 nodad; ip link set v0 up
		ip -n peer addr add 10.9.0.2/24 dev v1; ip -n peer addr add fd09::2/64 dev v1 nodad; ip -n peer link set v1 up`)
	send := func(from, to string, size int) error {
		return Send(t.Context(), netip.MustParseAddr(from), netip.MustParseAddr(to), size)
	}
	for _, size := range []int{64, 1500} {
		testkit.Eventually(t, "pings", func() string {
			if err := errors.Join(send("10.9.0.1", "10.9.0.2", size), send("fd09::1", "fd09::2", size)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	if err := errors.Join(send("10.9.0.1", "10.9.0.2", 1501)); !errors.Is(err, ErrTooBig) {
		t.Errorf("1501 bytes: %v", err)
	}
	testkit.Run(t, "sh", "-ec", "ip -n peer link set v1 mtu 1400")
	if err := send("10.9.0.1", "10.9.0.2", 1500); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("into a link of 1400: %v", err)
	}
	if err := send("10.9.0.1", "10.9.0.9", 64); err == nil {
		t.Error("an address without a host answers")
	}
	if err := send("10.9.0.7", "10.9.0.2", 64); err == nil || !strings.Contains(err.Error(),
		"opening a raw socket from 10.9.0.7") {
		t.Errorf("from an address that the node does not have: %v", err)
	}
	if err := Send(t.Context(), netip.Addr{}, netip.MustParseAddr("fd09::2"), 0); err != nil {
		t.Errorf("from whichever address the kernel takes: %v", err)
	}
}
