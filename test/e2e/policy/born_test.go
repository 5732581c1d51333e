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

// windowPods is the environment variable with the number of pods that are made in each test, instead of those of
// bornFor.
const windowPods = "WINDOW_PODS"

const (
	bornFor   = 20 * time.Second // how long pods are made
	bornBy    = 3                // how many at a time, of each direction
	killEvery = 100              // pods, where their number is given
	sinkPort  = 9999             // what pods send to, and are sent to
	datagrams = 300              // that a pod sends over each family, from its first instant
	pace      = 2 * time.Millisecond

	leastEdits = 20 // of labels and policies, with trouble
)

// nursery makes pods that may not be reached, in the namespace of their direction, and counts what passes all the same.
type nursery struct {
	*bed
	peer           machines.Namespace // that of a pod of the other node, which no policy applies to
	peerIPs        []netip.Addr
	number         atomic.Int64 // of pods
	kills          atomic.Int64 // of the master
	edits          atomic.Int64 // of labels and policies
	flooded        atomic.Int64 // datagrams that pods have sent
	sent, received atomic.Int64 // datagrams to the pods, and what came back
	arrivals                    // datagrams from pods
}

// born makes pods under a default deny. With trouble, labels and policies change all the time, and the master is
// killed: half-way through or, where their number is given, after every killEvery pods.
func (b *bed) born(t *testing.T, suffix string, trouble bool) {
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
	n := &nursery{bed: b, peer: b.inside(t, open, "peer", away), peerIPs: b.pods[open+"/peer"]}
	n.listen(t, n.peer)
	if n.raise(t, open, true, true); n.total() == 0 || n.received.Load() == 0 {
		t.Fatalf("of a pod that no policy applies to %d datagrams arrive, and %d are answered: the test shows nothing",
			n.total(), n.received.Load())
	}
	before, answered := n.total(), n.received.Load()
	n.number.Store(0)
	n.sent.Store(0)
	n.flooded.Store(0)
	n.raiseAll(t, in, out, trouble)
	pods := n.number.Load()
	t.Logf("%d pods, the master was killed %d times, %d changes; %d datagrams to them before and after they were there, "+
		"%d answers; %d datagrams of theirs, of which %d arrived", pods, n.kills.Load(), n.edits.Load(), n.sent.Load(),
		n.received.Load()-answered, n.flooded.Load(), n.total()-before)
	if n.received.Load() != answered || n.total() != before {
		t.Errorf("want neither answers nor arrivals: %v", n.from)
	}
	if n.sent.Load() == 0 || n.flooded.Load() == 0 || trouble != (n.kills.Load() > 0) ||
		trouble != (n.edits.Load() > leastEdits) {
		t.Error("want datagrams in both directions, and with trouble changes and a master that is killed")
	}
}

// raiseAll makes pods of both directions until there were enough.
func (n *nursery) raiseAll(t *testing.T, in, out string, trouble bool) {
	t.Helper()
	want := int64(machines.Number(t, windowPods, 0))
	every := min(killEvery, max(1, want/2))
	ctx := t.Context()
	if want == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, bornFor)
		defer cancel()
	}
	var raising sync.WaitGroup
	raiseSome := func(namespace string, receives, sends bool) {
		for ctx.Err() == nil && !t.Failed() && (want == 0 || n.number.Load() < want) {
			if i := n.raise(t, namespace, receives, sends); trouble && i%every == 0 && i < want {
				n.killMaster(t)
			}
		}
	}
	for range bornBy {
		raising.Go(func() { raiseSome(in, true, false) })
		raising.Go(func() { raiseSome(out, false, true) })
	}
	raised := make(chan struct{})
	var editing sync.WaitGroup
	if trouble {
		editing.Go(func() { n.edit(t, in, out, raised) })
	}
	if trouble && want == 0 {
		half := time.NewTimer(bornFor / 2)
		defer half.Stop()
		<-half.C
		n.killMaster(t)
	}
	raising.Wait()
	close(raised)
	editing.Wait()
}

func (n *nursery) killMaster(t *testing.T) {
	t.Helper()
	n.kills.Add(1)
	n.bed.killMaster(t)
}

// raise makes a pod and removes it again. If it receives, it is sent datagrams from when it has its addresses, which is
// before it is there, until it has been sent enough. If it sends, it ends when it has sent enough. The result is the
// pod's number.
func (n *nursery) raise(t *testing.T, namespace string, receives, sends bool) (number int64) {
	number = n.number.Add(1)
	name := fmt.Sprint("p", number)
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
	end := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for why := "not seen"; why != ""; <-tick.C {
		have, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && receives && !begun {
			if ips := granted(have); len(ips) > 0 {
				begun = true
				for _, ip := range ips {
					sending.Go(func() { n.send(t, ip, stop, &ready, &enough) })
				}
			}
		}
		if err == nil {
			if why = unfinished(have, receives, sends, enough.Load(), &ready); why == "" {
				n.countSent(t, have)
			}
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
	return number
}

// countSent counts what the containers of a pod that send have sent.
func (n *nursery) countSent(t *testing.T, p *corev1.Pod) {
	t.Helper()
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil && end.ExitCode == 0 {
			n.flooded.Add(datagrams)
		} else if end != nil {
			t.Errorf("pod %s/%s: container %s ended with exit code %d: %s", p.Namespace, p.Name, c.Name, end.ExitCode,
				end.Message)
		}
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
