package sctp

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Only the packets to a socket's own port are received.
func TestOnlyPort(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		addr := netip.MustParseAddr(at)
		conn, err := net.DialIP(network(addr), nil, &net.IPAddr{IP: addr.AsSlice()})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const own, other = 40001, 40002
		if err := onlyPort(conn, addr, own); err != nil {
			t.Fatal(err)
		}
		for _, port := range []uint16{other, own, other, own} { // to itself: the socket is connected to its own address
			p := Packet{From: 80, To: port, Tag: 1, Chunks: []Chunk{{Type: CookieAck}}}
			if _, err := conn.Write(p.Marshal()); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, maxPacket)
		for range 2 {
			n, _, err := conn.ReadFromIP(buf)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := Parse(buf[:n]); err != nil || p.To != own {
				t.Errorf("%s: received %+v, %v, want packets to port %d only", at, p, err, own)
			}
		}
	}
}
