package ha

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/scale/load"
)

// The pods that come and go are on Nodes without a machine: the master and OVN serve them like others, but no kubelet
// costs the machine's processors anything. There are so many pods that those deleted while no master leads are less
// than a fifth: a new leader would let the removal of more wait for approval. The Nodes have addresses for these pods
// and for those of a minute, for which freed addresses wait.
const (
	churnNamespace = "churn"
	churnNodes     = 16
	churnPods      = 2400                  // that live at a time
	churnPace      = 50 * time.Millisecond // between two new pods
)

// churn makes a pod at each tick, and then deletes the oldest.
type churn struct {
	kube kubernetes.Interface
	made int
}

// fill makes the first pods, and waits until they have addresses.
func (c *churn) fill(t *testing.T) {
	t.Helper()
	_, err := load.CreatePods(t.Context(), c.kube, churnNamespace, churnPods, churnNodes)
	must(t, err)
	c.made = churnPods
	machines.Within(t, limit, "the first pods have addresses", c.waiting)
}

// start begins, and returns what ends it.
func (c *churn) start(t *testing.T) (stop func()) {
	t.Helper()
	enough, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.run(t.Context(), enough) }()
	stop = sync.OnceFunc(func() {
		close(enough)
		if err := <-done; err != nil && t.Context().Err() == nil {
			t.Errorf("making and deleting pods: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (c *churn) run(ctx context.Context, enough <-chan struct{}) error {
	tick := time.NewTicker(churnPace)
	defer tick.Stop()
	for {
		select {
		case <-enough:
			return nil
		case <-tick.C:
		}
		if _, _, err := load.CreatePod(ctx, c.kube, churnNamespace, c.made, churnNodes); err != nil {
			return err
		}
		oldest := load.PodName(c.made - churnPods)
		c.made++
		if err := c.kube.CoreV1().Pods(churnNamespace).Delete(ctx, oldest, *metav1.NewDeleteOptions(0)); err != nil {
			return fmt.Errorf("deleting a pod: %w", err)
		}
	}
}

// waiting names a pod without addresses, "" if all have theirs.
func (c *churn) waiting(ctx context.Context) string {
	list, err := c.kube.CoreV1().Pods(churnNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, p := range list.Items {
		if p.Annotations[load.PodNetworks] == "" {
			return "pod " + p.Name + " has no addresses"
		}
	}
	return ""
}
