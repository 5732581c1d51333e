package nicmove_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// stream is a TCP connection to an echo server that sends continuously until stop.
type stream struct {
	echoed atomic.Int64
	quit   chan struct{}
	failed chan error
}

// block is the size in bytes that a stream sends at once.
const block = 1000

func startStream(t *testing.T, address string) *stream {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{quit: make(chan struct{}), failed: make(chan error, 1)}
	sent := make(chan int64, 1)
	onTheWay := make(chan struct{}, 20) // as many blocks at most
	content := func(n int64) []byte { return bytes.Repeat([]byte{byte(n)}, block) }
	go func() { // writes
		n := int64(0)
		for ; ; n++ {
			select {
			case <-s.quit:
				sent <- n
				_ = conn.(*net.TCPConn).CloseWrite()
				return
			case onTheWay <- struct{}{}:
			}
			if _, err := conn.Write(content(n)); err != nil {
				sent <- -1
				s.failed <- fmt.Errorf("writing block %d: %w", n, err)
				return
			}
		}
	}()
	go func() { // reads
		defer conn.Close()
		buffer := make([]byte, block)
		for n := int64(0); ; n++ {
			switch _, err := io.ReadFull(conn, buffer); {
			case err == io.EOF:
				if total := <-sent; total != n {
					s.failed <- fmt.Errorf("%d blocks sent, %d came back", total, n)
				}
				close(s.failed)
				return
			case err != nil:
				s.failed <- fmt.Errorf("reading block %d: %w", n, err)
				return
			case !bytes.Equal(buffer, content(n)):
				s.failed <- fmt.Errorf("block %d is not what was sent", n)
				return
			}
			s.echoed.Add(1)
			<-onTheWay
		}
	}()
	return s
}

// flows waits until more bytes have come back.
func (s *stream) flows(t *testing.T) {
	t.Helper()
	from := s.echoed.Load()
	testkit.Eventually(t, "more of the stream", func() string {
		select {
		case err := <-s.failed:
			t.Fatal(err)
		default:
		}
		if n := s.echoed.Load() - from; n < 100 {
			return fmt.Sprintf("%d blocks", n)
		}
		return ""
	})
}

// stop ends the stream, and checks that all bytes have come back.
func (s *stream) stop(t *testing.T) {
	t.Helper()
	close(s.quit)
	select {
	case err := <-s.failed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the stream does not end")
	}
}

// Streams of both families survive several moves and returns.
func TestStream(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	helper(t, "outside", "outside")
	var streams []*stream
	for _, address := range []string{"10.1.0.1:7", "192.0.2.1:7", "[fd01::1]:7", "[2001:db8::1]:7"} {
		streams = append(streams, startStream(t, address))
	}
	flow := func() {
		for _, s := range streams {
			s.flows(t)
		}
	}
	flow()
	for range 3 {
		mustRun(t, forward())
		flow()
		mustRun(t, back())
		flow()
	}
	for _, s := range streams {
		s.stop(t)
	}
	clean(t)
}

// A move stands if the API server sends any response, or if a connection or ping succeeds. Otherwise it is undone, with
// an error.
func TestConfirm(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	helper(t, "outside", "outside")
	before := dump(t, "eth0")
	for _, c := range []call{
		{API: "192.0.2.1:80"}, {API: "http://[2001:db8::1]"}, {API: "https://192.0.2.1"}, {Target: "10.1.0.1:7"},
		{Target: "[fd01::1]:7"}, {Target: "2001:db8::1"}, {Target: "192.0.2.1"},
	} {
		c.NICs, c.Options = []string{"eth0"}, forward().Options
		if out := mustRun(t, c); !strings.Contains(out, "eth0: moved to bridge breth0: ") ||
			!strings.Contains(out, c.API+c.Target+" has answered") {
			t.Errorf("%+v prints:\n%s", c, out)
		}
		mustRun(t, back())
	}
	for _, c := range []struct {
		call call
		want string
	}{
		{call{API: "http://192.0.2.1:81"}, "the API server http://192.0.2.1:81 does not answer within 1s: "},
		{call{API: "https://192.0.2.1:80"}, "the API server https://192.0.2.1:80 does not answer within 1s: "},
		{call{Target: "10.1.0.1:8"}, "10.1.0.1:8 does not answer within 1s: "},
		{call{Target: "10.1.0.200"}, "10.1.0.200 does not answer within 1s: "},
		{call{Target: "2001:db8::2"}, "2001:db8::2 does not answer within 1s: "},
	} {
		c.call.NICs, c.call.Options = []string{"eth0"}, forward().Options
		c.call.Options.Timeout = time.Second
		out, err := run(t, c.call)
		if err == nil || !strings.HasPrefix(err.Error(), "eth0: rolled back, it has its configuration again: "+c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v\n%s", c.call, err, out)
		}
		same(t, "eth0", dump(t, "eth0"), before)
		clean(t)
	}
	c := forward()
	c.Target, c.Options.Timeout = "10.1.0.200", time.Hour
	if out, err := runUntil(t, c, "eth0: asking 10.1.0.200 for up to 1h0m0s", syscall.SIGTERM); err == nil ||
		!strings.HasPrefix(err.Error(), "eth0: rolled back, it has its configuration again: interrupted: ") {
		t.Errorf("interrupted: %v\n%s", err, out)
	}
	same(t, "eth0", dump(t, "eth0"), before)
	clean(t)
	confirmByRouter(t, before)
	if _, err := nicmove.ParseTarget("10.0.0.1:"); err == nil {
		t.Error("10.0.0.1: is taken for a target")
	}
}

// Without a target, a default router that answers pings confirms a move.
func confirmByRouter(t *testing.T, before string) {
	t.Helper()
	c := forward()
	c.Target = ""
	if out := mustRun(t, c); !strings.Contains(out,
		"eth0: moved to bridge breth0: the default router 10.1.0.1 has answered") {
		t.Errorf("without a target, but with a router:\n%s", out)
	}
	mustRun(t, back())
	same(t, "eth0", dump(t, "eth0"), before)
	testkit.Run(t, "ip", "netns", "exec", "outside", "sysctl", "-q", "-w", "net.ipv4.icmp_echo_ignore_all=1",
		"net.ipv6.icmp.echo_ignore_all=1")
	if out, err := run(t, c); err == nil || !strings.Contains(err.Error(),
		"no default router behind the NIC answers a ping: give --confirm-target HOST:PORT or IP") || out != "" {
		t.Errorf("without a target, and the router is silent: %v\n%s", err, out)
	}
	same(t, "eth0", dump(t, "eth0"), before)
	c.Options.Unconfirmed = true
	if out := mustRun(t, c); !strings.Contains(out, "eth0: moved to bridge breth0, unconfirmed\n") {
		t.Errorf("unconfirmed:\n%s", out)
	}
	mustRun(t, back())
}
