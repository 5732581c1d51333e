package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

const (
	bornFor   = 60 * time.Second // how long pods are made
	bornBy    = 3                // how many at a time, of each direction
	sinkPort  = 9999             // what pods send to, and are sent to
	datagrams = 300              // that a pod sends over each family, from its first instant
	pace      = 2 * time.Millisecond
)

// nursery makes pods that may not be reached, in the namespace of their direction, and counts what passes all the same.
type nursery struct {
	*bed
	peer           machines.Namespace // that of a pod of the other node, which no policy applies to
	peerIPs        []netip.Addr
	number         atomic.Int64 // of pods
	sent, received atomic.Int64 // datagrams to the pods, and what came back
	mu             sync.Mutex
	from           map[netip.Addr]int // datagrams from pods
}

// born makes pods under a default deny for a minute. With kill the master is killed in the middle.
func (b *bed) born(t *testing.T, suffix string, kill bool) {
	in, out, open := "born-in"+suffix, "born-out"+suffix, "open"+suffix
	for _, n := range []string{in, out, open} {
		b.makeNamespace(t, n, nil)
	}
	deny := func(d networkingv1.PolicyType) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{d}}
	}
	b.makePolicy(t, in, "deny", deny(networkingv1.PolicyTypeIngress))
	b.makePolicy(t, out, "deny", deny(networkingv1.PolicyTypeEgress))
	b.makePod(t, serverPod(open, "peer", away, nil))
	b.awaitPod(t, open, "peer")
	n := &nursery{bed: b, peer: b.inside(t, open, "peer", away), peerIPs: b.pods[open+"/peer"], from: map[netip.Addr]int{}}
	n.listen(t)
	if n.raise(t, open, true, true); n.total() == 0 || n.received.Load() == 0 {
		t.Fatalf("of a pod that no policy applies to %d datagrams arrive, and %d are answered: the test shows nothing",
			n.total(), n.received.Load())
	}
	before, answered := n.total(), n.received.Load()
	n.number.Store(0)
	n.sent.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), bornFor)
	defer cancel()
	var raising sync.WaitGroup
	for range bornBy {
		raising.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				n.raise(t, in, true, false)
			}
		})
		raising.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				n.raise(t, out, false, true)
			}
		})
	}
	if kill {
		half := time.NewTimer(bornFor / 2)
		defer half.Stop()
		<-half.C
		if err := b.Restart(t.Context(), "master", syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	raising.Wait()
	t.Logf("%d pods; %d datagrams to them before and after they were there, %d answers; %d datagrams of theirs arrived",
		n.number.Load(), n.sent.Load(), n.received.Load()-answered, n.total()-before)
	if n.received.Load() != answered || n.total() != before || n.number.Load() == 0 {
		t.Errorf("want pods, and neither answers nor arrivals: %v", n.from)
	}
}

// listen counts datagrams from pods to the peer, until the test ends.
func (n *nursery) listen(t *testing.T) {
	t.Helper()
	var l net.PacketConn
	must(t, n.peer.Within(func() (err error) {
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
			n.mu.Lock()
			n.from[netip.MustParseAddrPort(from.String()).Addr().Unmap()]++
			n.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

// total is how many datagrams of pods have arrived.
func (n *nursery) total() (sum int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, count := range n.from {
		sum += int64(count)
	}
	return sum
}

// raise makes a pod and removes it again. If it receives, it is sent datagrams from when it has its addresses, which is
// before it is there, until it has been sent enough. If it sends, it ends when it has sent enough.
func (n *nursery) raise(t *testing.T, namespace string, receives, sends bool) {
	name := fmt.Sprint("p", n.number.Add(1))
	pod := serverPod(namespace, name, home, nil)
	pod.Spec.Containers = pod.Spec.Containers[:1]
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	if sends {
		for i, to := range n.peerIPs {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: fmt.Sprint("sends-", i), Image: "localhost/echo:1", ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{machines.EchoInPod, "flood", netip.AddrPortFrom(to, sinkPort).String(), fmt.Sprint(datagrams),
					"32"},
			})
		}
	}
	if !receives {
		pod.Spec.Containers = pod.Spec.Containers[1:]
	}
	pods := n.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	stop := make(chan struct{})
	var sending sync.WaitGroup
	var enough atomic.Int64 // datagrams since the pod is ready
	var ready atomic.Bool
	begun := false
	end := time.Now().Add(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for why := "not seen"; why != ""; <-tick.C {
		have, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && receives && !begun {
			if ips, _, _ := granted(have); len(ips) > 0 {
				begun = true
				for _, ip := range ips {
					sending.Go(func() { n.send(t, ip, stop, &ready, &enough) })
				}
			}
		}
		if err == nil {
			why = unfinished(have, receives, sends, enough.Load(), &ready)
		}
		if time.Now().After(end) {
			t.Errorf("pod %s/%s: %v, %s", namespace, name, err, why)
			break
		}
	}
	close(stop)
	sending.Wait()
	now := int64(0)
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// unfinished tells what a pod has yet to do, "" for nothing.
func unfinished(p *corev1.Pod, receives, sends bool, sent int64, ready *atomic.Bool) string {
	ended, running := 0, 0
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			ended++
		}
		if c.State.Running != nil {
			running++
		}
	}
	if sends && ended < 2 {
		return fmt.Sprintf("%d of 2 senders have ended", ended)
	}
	if receives && running == 0 {
		return "its server does not run"
	}
	ready.Store(true)
	if receives && sent < datagrams {
		return fmt.Sprintf("it was sent %d datagrams", sent)
	}
	return ""
}

// send sends datagrams to a pod until stop. An answer counts, and so does an error that the pod itself reports: either
// shows that a packet has passed.
func (n *nursery) send(t *testing.T, to netip.Addr, stop chan struct{}, ready *atomic.Bool, enough *atomic.Int64) {
	var c net.Conn
	if err := n.peer.Within(func() (err error) {
		c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, lowPort)))
		return err
	}); err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	buf := make([]byte, 2048)
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		_, err := c.Write([]byte("?"))
		if err == nil {
			n.sent.Add(1)
			if ready.Load() {
				enough.Add(1)
			}
			if err = c.SetReadDeadline(time.Now().Add(time.Microsecond)); err != nil {
				t.Error(err)
				return
			}
			_, err = c.Read(buf)
		}
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			n.received.Add(1)
		} else if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.EHOSTUNREACH) &&
			!errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("sending to %s: %v", to, err)
			return
		}
	}
}
