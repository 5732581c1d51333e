package cni_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Other pods receive one ARP announcement and one unsolicited neighbour advertisement for a new pod, and update their
// neighbour tables.
func TestAnnouncement(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.startOVN(t, true)
	listener := pod{"listener", "uid-listener", []string{"10.128.2.9/23", "fd01:0:0:1::9/64"},
		[]string{"10.128.2.1", "fd01:0:0:1::1"}, nil}
	for _, p := range []pod{listener, web()} {
		logicalPort(t, p)
		b.create(t, p, true)
	}
	add(listener, idB, netns(t, listener.name)).succeed(t)
	testkit.Run(t, "sh", "-ec", `for a in 10.128.2.3 fd01:0:0:1::3; do ip -n listener neigh add $a lladdr `+
		`02:00:00:00:00:01 dev eth0 nud stale; done`)
	fd := capture(t, "/run/netns/listener")
	add(web(), idA, netns(t, "web")).succeed(t)

	arp := []byte("\xff\xff\xff\xff\xff\xff\x0a\x58\x0a\x80\x02\x03\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01" +
		"\x0a\x58\x0a\x80\x02\x03\x0a\x80\x02\x03\x00\x00\x00\x00\x00\x00\x0a\x80\x02\x03")
	addr := "\xfd\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03"
	icmp := []byte("\x88\x00\x00\x00\x20\x00\x00\x00" + addr + "\x02\x01\x0a\x58\x0a\x80\x02\x03")
	ip := []byte(addr + "\xff\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x00\x00\x00\x20\x00\x00\x00\x3a")
	binary.BigEndian.PutUint16(icmp[2:], ^sum(append(ip, icmp...)))
	na := []byte("\x33\x33\x00\x00\x00\x01\x0a\x58\x0a\x80\x02\x03\x86\xdd\x60")
	seen := map[string]int{}
	buf := make([]byte, 2048)
	for seen["arp"] == 0 || seen["na"] == 0 {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("waiting for the announcements, seen so far %v: %v", seen, err)
		}
		switch frame := buf[:n]; {
		case bytes.Equal(frame[:min(n, len(arp))], arp):
			seen["arp"]++
		case bytes.HasPrefix(frame, na) && n == 14+40+len(icmp) && bytes.Equal(frame[54:], icmp) && frame[21] == 255:
			seen["na"]++
		}
	}
	if seen["arp"] != 1 || seen["na"] != 1 {
		t.Errorf("announcements seen: %v, want one of each", seen)
	}
	testkit.Eventually(t, "the listener's neighbours are right", func() string {
		have := neighbours(t, listener.name)
		for _, a := range []string{"10.128.2.3", "fd01:0:0:1::3"} {
			if !strings.Contains(have, a+" dev eth0 lladdr 0a:58:0a:80:02:03 ") {
				return "got " + have
			}
		}
		return ""
	})
}

// capture opens a socket that receives all frames in a network namespace.
func capture(t *testing.T, netns string) (fd int) {
	t.Helper()
	err := ns.WithNetNSPath(netns, func(ns.NetNS) (err error) {
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(all))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// sum is the ones' complement sum of the Internet checksum (RFC 1071).
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
