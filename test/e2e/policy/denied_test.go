package policy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// deniedEvery is the pause between the datagrams of a pod that no policy allows.
const deniedEvery = 2 * time.Millisecond

// arrivals counts the datagrams that arrive at a pod, by the address of who sent them.
type arrivals struct {
	mu   sync.Mutex
	from map[netip.Addr]int
}

// total is how many datagrams have arrived.
func (a *arrivals) total() (sum int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, count := range a.from {
		sum += int64(count)
	}
	return sum
}

// of is how many of them have one of these sources.
func (a *arrivals) of(ips []netip.Addr) (sum int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ip := range ips {
		sum += a.from[ip]
	}
	return sum
}

// listen counts what arrives at the sink port of a pod, until the test ends.
func (a *arrivals) listen(t *testing.T, at machines.Namespace) {
	t.Helper()
	a.from = map[netip.Addr]int{}
	var l net.PacketConn
	must(t, at.Within(func() (err error) {
		l, err = net.ListenPacket("udp", fmt.Sprint(":", sinkPort))
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			_, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			a.mu.Lock()
			a.from[netip.MustParseAddrPort(from.String()).Addr().Unmap()]++
			a.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

// neverArrive has two pods send to the namespace's server while policies and labels change. One is in the namespace,
// which denies it all egress. The other, in a namespace without policies, has a role that the server admits from other
// namespaces only. No state of the test allows either. The result ends the sending, and checks that nothing arrived.
func (b *bed) neverArrive(t *testing.T, namespace string) (end func()) {
	t.Helper()
	elsewhere := namespace + "-elsewhere"
	b.makeNamespace(t, elsewhere, nil)
	b.makePod(t, serverPod(namespace, "stranger", away, map[string]string{"role": "stranger"}))
	b.makePod(t, serverPod(elsewhere, "foreigner", away, map[string]string{"role": "web"}))
	b.awaitPod(t, namespace, "stranger")
	b.awaitPod(t, elsewhere, "foreigner")
	a := &arrivals{}
	a.listen(t, b.inside(t, namespace, "server", home))
	b.arrives(t, namespace, a)
	senders := map[string][]netip.Addr{
		"a pod that its own namespace denies":     b.pods[namespace+"/stranger"],
		"a pod of a namespace that is not let in": b.pods[elsewhere+"/foreigner"],
	}
	stop, sent := make(chan struct{}), &atomic.Int64{}
	var sending sync.WaitGroup
	for _, inside := range []machines.Namespace{
		b.inside(t, namespace, "stranger", away), b.inside(t, elsewhere, "foreigner", away),
	} {
		for _, ip := range b.pods[namespace+"/server"] {
			c := dial(t, inside, "udp", netip.AddrPortFrom(ip, sinkPort))
			sending.Go(func() { sendUntil(stop, c, sent) })
		}
	}
	return func() {
		t.Helper()
		close(stop)
		sending.Wait()
		for who, ips := range senders {
			if n := a.of(ips); n > 0 {
				t.Errorf("of %s %d datagrams arrived, want none", who, n)
			}
		}
		t.Logf("%d datagrams that no policy allowed meanwhile, of which none arrived", sent.Load())
		if sent.Load() < 1000 {
			t.Errorf("only %d were sent: the test shows nothing", sent.Load())
		}
	}
}

// arrives waits until a datagram of the client, which the policies allow, is counted: what is denied would be, too.
func (b *bed) arrives(t *testing.T, namespace string, a *arrivals) {
	t.Helper()
	client := b.inside(t, namespace, "client", away)
	for _, ip := range b.pods[namespace+"/server"] {
		c := dial(t, client, "udp", netip.AddrPortFrom(ip, sinkPort))
		family := []netip.Addr{}
		for _, own := range b.pods[namespace+"/client"] {
			if own.Is4() == ip.Is4() {
				family = append(family, own)
			}
		}
		machines.Eventually(t, "a datagram that is allowed is counted", func(context.Context) string {
			if _, err := c.Write([]byte("?")); err != nil {
				return err.Error()
			}
			if a.of(family) == 0 {
				return "none arrived"
			}
			return ""
		})
	}
}

// sendUntil sends datagrams until stop is closed. What comes back, such as an error of the other side, does not matter.
func sendUntil(stop <-chan struct{}, c net.Conn, sent *atomic.Int64) {
	pause := time.NewTicker(deniedEvery)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pause.C:
			if _, err := c.Write([]byte("?")); err == nil {
				sent.Add(1)
			}
		}
	}
}

// killMaster kills the master, which starts again by itself.
func (b *bed) killMaster(t *testing.T) {
	t.Helper()
	if err := b.Restart(t.Context(), "master", syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
