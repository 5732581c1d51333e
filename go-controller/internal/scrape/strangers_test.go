package scrape

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// dialFrom connects from an address of this machine. The connection says nothing.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A host that opens many connections takes only its own places: this machine and other hosts are answered. A place that
// is given back can be taken again.
func TestStrangersTakeNoPlaces(t *testing.T) {
	address := newBed(t).serve(t)
	var open []net.Conn
	for range perHost + 3 {
		open = append(open, dialFrom(t, "127.0.0.2", address))
	}
	soon := time.Now().Add(headerTimeout - time.Second) // by headerTimeout, silent ones with a place are closed, too
	for i, c := range open[perHost:] {
		if err := c.SetReadDeadline(soon); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d of a host stays open, want at most %d", perHost+1+i, perHost)
		}
	}
	if err := healthz("127.0.0.2", address); err == nil {
		t.Error("a host without places is answered")
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.3"} {
		for range 2 * perHost { // each answer gives its place back
			if err := healthz(from, address); err != nil {
				t.Fatalf("from %s: %v", from, err)
			}
		}
	}
	for _, c := range open {
		c.Close()
	}
	end := time.Now().Add(10 * time.Second)
	for err := healthz("127.0.0.2", address); err != nil; err = healthz("127.0.0.2", address) {
		if time.Now().After(end) {
			t.Fatalf("places that were given back can't be taken again: %v", err)
		}
	}
}

// The pace of questions is each host's own, and what is remembered of hosts is bounded.
func TestPaces(t *testing.T) {
	p := newPaces()
	for i := range hostBurst + 1 {
		if got, want := p.allow("192.0.2.1:1"), i < hostBurst; got != want {
			t.Errorf("question %d: allowed %v, want %v", i, got, want)
		}
	}
	if !p.allow("[::ffff:192.0.2.2]:1") || !p.allow("[2001:db8::1]:1") {
		t.Error("other hosts wait for the first")
	}
	for i := range 2 * maxHosts {
		p.allow(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250))
	}
	if n := len(p.of); n > maxHosts {
		t.Errorf("%d hosts are remembered, want at most %d", n, maxHosts)
	}
}
