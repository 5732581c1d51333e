package attacks

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// arrivals counts the frames that arrive at a link, by what they are.
type arrivals struct {
	where string
	fd    int
	done  chan struct{}
	mu    sync.Mutex
	ended bool
	count map[string]int // by key
	arps  map[string]bool
	more  chan struct{} // is full when something has been counted
}

// within is a network namespace: that of a machine or a pod.
type within interface{ Within(func() error) error }

// arrive counts frames until the test ends. arps are the keys that are bodies of ARP packets.
func arrive(t *testing.T, where string, in within, link string, arps map[string]bool) *arrivals {
	t.Helper()
	a := &arrivals{where: where, done: make(chan struct{}), count: map[string]int{}, arps: arps,
		more: make(chan struct{}, 1)}
	must(t, in.Within(func() (err error) {
		a.fd, err = machines.PacketSocket(link)
		return err
	}))
	go a.read()
	t.Cleanup(func() {
		a.mu.Lock()
		a.ended = true
		a.mu.Unlock()
		<-a.done
		_ = unix.Close(a.fd)
	})
	return a
}

func (a *arrivals) read() {
	defer close(a.done)
	frame := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(a.fd, frame, 0)
		link, _ := from.(*unix.SockaddrLinklayer)
		a.mu.Lock()
		ended := a.ended
		if err == nil && link != nil && link.Pkttype != unix.PACKET_OUTGOING {
			a.look(frame[:n])
			select {
			case a.more <- struct{}{}:
			default:
			}
		}
		a.mu.Unlock()
		if ended {
			return
		}
	}
}

// look finds a frame's key: its mark, wherever it is, or the body of ARP.
func (a *arrivals) look(frame []byte) {
	if at := bytes.Index(frame, []byte("spf")); at >= 0 && at+markLength <= len(frame) {
		a.count[string(frame[at:at+markLength])]++
		return
	}
	const arpLength = 28
	if len(frame) < 14+arpLength {
		return
	}
	if body := string(frame[14 : 14+arpLength]); a.arps[body] {
		a.count[body]++
	}
}

func (a *arrivals) of(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[key]
}

// await waits until there are more than n of a key; at most as long as a packet may take.
func (a *arrivals) await(key string, n int) bool {
	const patience = time.Second
	late := time.NewTimer(patience)
	defer late.Stop()
	for a.of(key) <= n {
		select {
		case <-a.more:
		case <-late.C:
			return a.of(key) > n
		}
	}
	return true
}

// lost is an error if the kernel dropped a frame that was not looked at.
func (a *arrivals) lost() error {
	s, err := unix.GetsockoptTpacketStats(a.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if s.Drops > 0 {
		return errors.New("frames were not looked at")
	}
	return nil
}
