package upgrade

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// churn makes a pod on a node, waits until it is Ready, deletes it, and begins again.
type churn struct {
	made   atomic.Int64
	cancel context.CancelFunc
	ended  sync.WaitGroup
	err    error // why it ended; may be read after stop
}

func startChurn(c *sandbox.Cluster, node string) *churn {
	ctx, cancel := context.WithCancel(context.Background())
	k := &churn{cancel: cancel}
	k.ended.Go(func() {
		for ctx.Err() == nil {
			if err := k.once(ctx, c, node); err != nil && ctx.Err() == nil {
				k.err = err
				return
			}
		}
	})
	return k
}

// once makes and deletes a pod.
func (k *churn) once(ctx context.Context, c *sandbox.Cluster, on string) error {
	name := fmt.Sprintf("churn-%d", k.made.Load())
	for _, args := range [][]string{
		{"run", name, "--image=localhost/pause:1", "--restart=Never", "--overrides", `{"spec":{"nodeName":"` + on + `"}}`},
		{"wait", "--for=condition=Ready", "--timeout=60s", "pod/" + name},
		{"delete", "pod", name, "--now"},
	} {
		if out, err := c.Kubectl(ctx, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("pod %s on node %s: kubectl %v: %w: %s", name, on, args, err, out)
		}
	}
	k.made.Add(1)
	return nil
}

// more waits until a pod has been made that was begun after now.
func (k *churn) more(t *testing.T) {
	t.Helper()
	want := k.made.Load() + 2
	machines.Eventually(t, "pods that come and go", func(context.Context) string {
		if have := k.made.Load(); have < want {
			return fmt.Sprintf("%d were made, want %d", have, want)
		}
		return ""
	})
}

func (k *churn) stop() {
	k.cancel()
	k.ended.Wait()
}
