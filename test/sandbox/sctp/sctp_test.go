package sctp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/scale/netns"
)

// The tests' packets stay in a network namespace of their own.
func TestMain(m *testing.M) { os.Exit(netns.Main(m.Run)) }

func served(t *testing.T, port uint16, name string) {
	t.Helper()
	l, err := Listen(port)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- l.Serve(func(from netip.AddrPort, question []byte) []byte {
			return fmt.Appendf(nil, "%s of %s: %s", name, from.Addr(), question)
		})
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// Many clients ask two servers at the same time, at several addresses of both families.
func TestAsk(t *testing.T) {
	served(t, 80, "one")
	served(t, 81, "two")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var asking sync.WaitGroup
	for at, want := range map[string]string{
		"127.0.0.1:80": "one of 127.0.0.1: ?", "127.0.0.1:81": "two of 127.0.0.1: ?",
		"127.0.0.2:80": "one of 127.0.0.1: ?", "[::ffff:127.0.0.2]:80": "one of 127.0.0.1: ?",
		"[::1]:80": "one of ::1: ?", "[::1]:81": "two of ::1: ?",
	} {
		for range 20 {
			asking.Go(func() {
				have, err := Ask(ctx, netip.MustParseAddrPort(at), []byte("?"))
				if err != nil || string(have) != want {
					t.Errorf("%s: %q, %v; want %q", at, have, err, want)
				}
			})
		}
	}
	asking.Wait()
}

func TestAskNobody(t *testing.T) {
	served(t, 80, "one")
	to := netip.MustParseAddrPort("127.0.0.1:80")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Ask(ctx, to, []byte("?")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 2*repeat)
	defer cancel()
	_, err := Ask(ctx, netip.AddrPortFrom(to.Addr(), 79), []byte("?"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "INIT ACK") {
		t.Errorf("a port that nobody serves: %v", err)
	}
	for _, size := range []int{0, MaxMessage + 1} {
		if _, err := Ask(ctx, to, make([]byte, size)); err == nil {
			t.Errorf("a question of %d bytes is sent", size)
		}
	}
}

// Only an ABORT with the right tag refuses an INIT.
func TestAborted(t *testing.T) {
	s, err := listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	inits := make(chan int, 1)
	go func() {
		seen := 0
		defer func() { inits <- seen }()
		for {
			b, way, err := s.receive()
			if err != nil {
				return
			}
			p, err := Parse(b)
			if err != nil || p.To != 82 {
				continue
			}
			seen++
			i, ok := p.Chunks[0].initiation()
			if seen == 1 {
				i.tag++
			}
			if !ok || s.answer(way, Packet{82, p.From, i.tag, []Chunk{{Type: Abort}}}) != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Ask(ctx, netip.MustParseAddrPort("127.0.0.1:82"), []byte("?")); !errors.Is(err, ErrAborted) {
		t.Errorf("%v, want ErrAborted", err)
	}
	if err := s.conn.Close(); err != nil {
		t.Error(err)
	}
	if seen := <-inits; seen != 2 {
		t.Errorf("%d INITs were seen, want 2: one more after the ABORT of somebody else", seen)
	}
}

// A server answers each packet, and repeats its answers when packets are repeated.
func TestReply(t *testing.T) {
	asked := 0
	s := newServer(nil, 80, func(netip.AddrPort, []byte) []byte { asked++; return []byte("!") })
	e := end{path{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}, 40000}
	peer := initiation{tag: 7, tsn: 0xffffffff}
	var own initiation
	say := func(what string, tag uint32, c Chunk, wantTag uint32, want ...ChunkType) []Chunk {
		t.Helper()
		gotTag, chunks := s.reply(e, Packet{40000, 80, tag, []Chunk{c}})
		var have []ChunkType
		for _, c := range chunks {
			have = append(have, c.Type)
		}
		if !slices.Equal(have, want) || len(want) > 0 && gotTag != wantTag {
			t.Fatalf("%s: %v with tag %d, want %v with %d", what, have, gotTag, want, wantTag)
		}
		return chunks
	}
	say("DATA of no association", 5, data(1, []byte("?")), 5, Abort)
	say("SHUTDOWN ACK of none", 5, Chunk{Type: ShutdownAck}, 5, ShutdownComplete)
	say("ABORT of none", 5, Chunk{Type: Abort}, 0)
	say("INIT with a tag", 1, peer.chunk(Init), 0)
	own, _ = say("INIT", 0, peer.chunk(Init), 7, InitAck)[0].initiation()
	forged := slices.Clone(own.cookie)
	forged[cookieSize-1] ^= 1
	say("another cookie", own.tag, Chunk{Type: CookieEcho, Value: forged}, 0)
	say("a cookie with another tag", own.tag+1, Chunk{Type: CookieEcho, Value: own.cookie}, 0)
	if len(s.open) != 0 {
		t.Fatalf("%d associations before the cookie came back", len(s.open))
	}
	for range 2 {
		say("COOKIE ECHO", own.tag, Chunk{Type: CookieEcho, Value: own.cookie}, 7, CookieAck)
	}
	say("DATA with another tag", own.tag+1, data(peer.tsn, []byte("?")), 0)
	for range 2 {
		c := say("DATA", own.tag, data(peer.tsn, []byte("?")), 7, Sack, Data)
		if tsn, message, _ := c[1].message(); !c[0].acknowledges(peer.tsn) || tsn != own.tsn || string(message) != "!" {
			t.Errorf("it is answered by %d %q, want %d", tsn, message, own.tsn)
		}
	}
	say("HEARTBEAT", own.tag, Chunk{Type: Heartbeat, Value: []byte("beat")}, 7, HeartbeatAck)
	say("SACK", own.tag, sack(own.tsn), 0)
	say("SHUTDOWN before the answer came", own.tag, shutdown(own.tsn-1), 7, Data)
	for range 2 {
		say("SHUTDOWN", own.tag, shutdown(own.tsn), 7, ShutdownAck)
	}
	say("SHUTDOWN COMPLETE", own.tag, Chunk{Type: ShutdownComplete}, 0)
	if asked != 1 || len(s.open) != 0 {
		t.Errorf("asked %d times, %d associations left; want 1 and 0", asked, len(s.open))
	}
}

// A kernel without SCTP reports that, at an address whose packets no raw socket receives.
func TestAskUnserved(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Ask(ctx, netip.MustParseAddrPort("127.0.0.2:80"), []byte("?")); !errors.Is(err, unix.ENOPROTOOPT) {
		t.Errorf("%v, want %v", err, unix.ENOPROTOOPT)
	}
}

// Usable tells a kernel with SCTP from one without.
func TestUsable(t *testing.T) {
	dir := t.TempDir()
	if err := usable(dir); err != nil {
		t.Errorf("without it: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sctp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := usable(dir); !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), dir) {
		t.Errorf("with it: %v, want ErrKernel, and where it is seen", err)
	}
	if err := usable("bad\x00path"); err == nil || errors.Is(err, ErrKernel) {
		t.Errorf("where it can't be seen: %v", err)
	}
}
