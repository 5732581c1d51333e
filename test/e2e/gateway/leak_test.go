package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/member"
)

// inside are the source addresses that must not appear outside: those of pods, and of routers on the join switch.
func inside() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48"),
		netip.MustParsePrefix("100.64.1.0/24"), netip.MustParsePrefix("fd98::/64"),
	}
}

// The frames to check, and the positions of their addresses (IEEE 802.3, RFC 791, RFC 8200).
const (
	headers = 14 + 40 // Ethernet's header and the longer IP header
	buffer  = 64 << 20
)

// capture reads every frame on every link of a machine.
type capture struct {
	fd    int
	done  chan struct{}
	mu    sync.Mutex
	ended bool
	seen  map[netip.Addr]int // number of frames by source
	leaks []string
}

// watch captures the frames of a machine until the test ends or check is called.
func watch(t *testing.T, m *member.Member) *capture {
	t.Helper()
	c := &capture{done: make(chan struct{}), seen: map[netip.Addr]int{}}
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network byte order
	err := m.Within(func() (err error) {
		c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything)
		return err
	})
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
			unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	}
	if err != nil {
		t.Fatal(err)
	}
	go c.read()
	t.Cleanup(c.stop)
	return c
}

func (c *capture) read() {
	defer close(c.done)
	frame := make([]byte, headers)
	for {
		n, from, err := unix.Recvfrom(c.fd, frame, 0)
		c.mu.Lock()
		ended := c.ended
		if err == nil {
			c.look(frame[:n], from)
		}
		c.mu.Unlock()
		if ended {
			return
		}
	}
}

func (c *capture) look(frame []byte, from unix.Sockaddr) {
	var source, to netip.Addr
	switch {
	case len(frame) >= 34 && frame[12] == 0x08 && frame[13] == 0:
		source, _ = netip.AddrFromSlice(frame[26:30])
		to, _ = netip.AddrFromSlice(frame[30:34])
	case len(frame) >= 54 && frame[12] == 0x86 && frame[13] == 0xdd:
		source, _ = netip.AddrFromSlice(frame[22:38])
		to, _ = netip.AddrFromSlice(frame[38:54])
	default:
		return
	}
	c.seen[source]++
	if slices.ContainsFunc(inside(), func(p netip.Prefix) bool { return p.Contains(source) }) && len(c.leaks) < 20 {
		link, _ := from.(*unix.SockaddrLinklayer)
		c.leaks = append(c.leaks, fmt.Sprintf("%s to %s on link %d: % x", source, to, link.Ifindex, frame[14:]))
	}
}

func (c *capture) stop() {
	c.mu.Lock()
	already := c.ended
	c.ended = true
	c.mu.Unlock()
	<-c.done
	if !already {
		_ = unix.Close(c.fd)
	}
}

// check ends the capture. It must have lost no frame, have seen packets from each of the sources, and none from inside.
func (c *capture) check(t *testing.T, sources ...netip.Addr) {
	t.Helper()
	lost, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		t.Fatal(os.NewSyscallError("getsockopt", err))
	}
	c.stop()
	if lost.Drops != 0 {
		t.Errorf("%d of %d frames were not looked at", lost.Drops, lost.Packets)
	}
	for _, a := range sources {
		if c.seen[a] == 0 {
			t.Errorf("no packet of %s was seen", a)
		}
	}
	for _, l := range c.leaks {
		t.Errorf("an address of the cluster's got out: %s", l)
	}
}

// strays makes pods send packets that belong to no connection to the host outside.
func (b bed) strays(pods ...string) {
	b.t.Helper()
	for _, pod := range pods {
		for _, o := range families().Outside() {
			machines.Kubectl(b.t, b.Cluster, "", "exec", pod, "--", machines.EchoInPod, "stray", o.Addr().String())
		}
		for _, o := range families().Outside() { // the answers prove that all earlier packets were captured
			b.mirror(pod, o.Addr(), 1000)
		}
	}
}
