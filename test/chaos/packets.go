package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/chaos/plane"
	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/scale/load"
)

// startPackets has a pod on a node send to one on another, in each network, in both address families, until the end.
func (w *world) startPackets(ctx context.Context) (err error) {
	dir := filepath.Join(w.Dir, "plane")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if w.plane, err = plane.New(ctx, dir, "unix:"+w.NB.Socket, stable); err != nil {
		return err
	}
	for _, home := range homes() {
		// A network's first Service has its switches track connections: an answer that is on the way then is lost.
		if _, err := load.CreateService(ctx, w.Kube, home, 0); err != nil {
			return err
		}
		var pods []*plane.Pod
		for i := range stable {
			pod, err := w.attached(ctx, home, i)
			if err != nil {
				return err
			}
			pods = append(pods, pod)
		}
		for _, to := range pods[1].Addrs {
			s, end, err := machines.NewStream(home+" to "+to.String(), func(ctx context.Context) *exec.Cmd {
				return pods[0].Ping(ctx, to)
			})
			if err != nil {
				return err
			}
			w.streams, w.endStreams = append(w.streams, s), append(w.endStreams, end)
		}
	}
	if err := w.eventually(ctx, "pods reach each other", w.replies(1)); err != nil {
		return err
	}
	for _, s := range w.streams {
		s.Reset() // a link that came may have cost a packet
		w.repliedBefore += s.Replies()
	}
	return nil
}

// attached makes a pod on one of the nodes with Open vSwitch, in a network namespace. The churn leaves it alone.
func (w *world) attached(ctx context.Context, home string, node int) (*plane.Pod, error) {
	made := load.Pod(home, node, stable)
	made.Name = fmt.Sprintf("stays-%d", node)
	pods := w.Kube.CoreV1().Pods(home)
	if _, err := pods.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("making a pod that stays: %w", err)
	}
	if err := w.eventually(ctx, "a pod that stays has addresses", func(ctx context.Context) (string, error) {
		waiting, err := w.churn.waiting(ctx)
		return strings.Join(waiting, " "), err
	}); err != nil {
		return nil, err
	}
	pod, err := pods.Get(ctx, made.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading a pod that stays: %w", err)
	}
	return w.plane.Attach(ctx, node, pod)
}

// awaitFlows waits until the nodes have the flows of all that is in the Northbound database now (ovn-nbctl(8), --wait).
// Those of hostile objects take them a minute or more, and more than five where other programs keep the processors
// busy. A database that was emptied or restored counts from a lower number, and what the nodes have done before would
// count as done: then it goes on from theirs.
func (w *world) awaitFlows(ctx context.Context) error {
	sync := func() error {
		_, err := w.nbctl(ctx, "--timeout=900", "--wait=hv", "sync")
		return err
	}
	if err := sync(); err != nil {
		return err
	}
	out, err := w.nbctl(ctx, "get", "nb_global", ".", "nb_cfg", "hv_cfg")
	if err != nil {
		return err
	}
	var asked, done int
	if _, err := fmt.Sscan(out, &asked, &done); err != nil {
		return fmt.Errorf("reading nb_cfg and hv_cfg, %q: %w", out, err)
	}
	if done <= asked {
		return nil
	}
	if _, err := w.nbctl(ctx, "set", "nb_global", ".", fmt.Sprintf("nb_cfg=%d", done)); err != nil {
		return err
	}
	return sync()
}

// awaitCalm waits until pods reach each other. If packets were lost, it waits until none is lost in ten seconds: Open
// vSwitch goes on removing the flows of hostile objects when ovn-controller is done.
func (w *world) awaitCalm(ctx context.Context) error {
	const few, many = 10, 500 // replies of each stream
	lost := func() (n int) {
		for _, s := range w.streams {
			n += s.Lost()
		}
		return n
	}
	if err := w.eventually(ctx, "pods reach each other", w.replies(few)); err != nil {
		return err
	}
	for before := 0; before != lost(); {
		before = lost()
		if err := w.eventually(ctx, "pods reach each other", w.replies(many)); err != nil {
			return err
		}
	}
	return nil
}

// replies asks whether each stream has so many more replies than now.
func (w *world) replies(more int64) func(context.Context) (string, error) {
	missing := machines.Missing(w.streams, more)
	return func(context.Context) (string, error) { return missing(), nil }
}

// lost is how many packets of how many were lost since the last call. It is an error that a fault lost any which is not
// marked so, unless another cluster may run beside this one.
func (w *world) lost(t *testing.T, f fault) string {
	t.Helper()
	lost, replies := 0, int64(0)
	for _, s := range w.streams {
		n, said := s.Take()
		switch {
		case n > 0 && f.mayLose:
			w.note("%s: %s", f.name, said)
		case n > 0 && !machines.Beside():
			t.Errorf("%s: %s", f.name, said)
		}
		lost += n
		replies += s.Replies()
	}
	sent := replies - w.repliedBefore + int64(lost)
	w.repliedBefore = replies
	return fmt.Sprintf("%d of %d", lost, sent)
}
