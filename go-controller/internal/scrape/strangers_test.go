package scrape

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// closed tells whether the other side has closed a connection, or does so within half a second.
func closed(t *testing.T, c net.Conn) bool {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// A host that opens many connections takes only its own places: this machine and other hosts are answered. A place that
// is given back can be taken again.
func TestStrangersTakeNoPlaces(t *testing.T) {
	b := newBed(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var open []net.Conn
	for range perHost + 3 {
		open = append(open, dialFrom(t, "127.0.0.2", l.Addr().String()))
	}
	for i, c := range open[perHost:] {
		if !closed(t, c) {
			t.Errorf("connection %d of a host stays open, want at most %d", perHost+1+i, perHost)
		}
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.3"} {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}}
		for range 2 * perHost { // each leaves its place: the answers say that the connection ends
			answer, err := client.Get("https://" + l.Addr().String() + "/healthz")
			if err != nil {
				t.Fatalf("from %s: %v", from, err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || string(text) != "ok\n" || !answer.Close {
				t.Errorf("from %s: %q, %v, the connection ends: %v", from, text, err, answer.Close)
			}
		}
	}
	for _, c := range open {
		c.Close()
	}
	end := time.Now().Add(10 * time.Second)
	for closed(t, dialFrom(t, "127.0.0.2", l.Addr().String())) {
		if time.Now().After(end) {
			t.Fatal("places that were given back can't be taken again")
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
