package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/webhook"
)

// phaseWebhook measures what a slow admission webhook costs the pods that it does not let wait.
const phaseWebhook = "webhook"

const (
	webhookWait  = 5 * time.Second
	webhookEvery = 10 // it lets every tenth pod wait
)

// webhookPhases are steady pods without a webhook, with one that answers at once, and with a slow one.
func webhookPhases() []struct{ namespace, what string } {
	return []struct{ namespace, what string }{
		{"no-webhook", "create to annotation, p50 p95 p99: without a webhook"},
		{"quick-webhook", "with a webhook that answers at once"},
		{"slow-webhook", "with one that lets every tenth pod wait for 5 s: the others"},
	}
}

func (b *bench) webhook(ctx context.Context) error {
	var p99 []time.Duration
	for i, p := range webhookPhases() {
		if err := b.prepare(ctx, p.namespace); err != nil {
			return err
		}
		took, err := b.beside(ctx, p.namespace, i > 0, i > 1)
		if err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
		p99 = append(p99, percentile(took, 99))
		line := b.report.add(phaseWebhook, p.what, "%s", percentiles(took))
		if i > 0 {
			line.beside("p99 %s", milliseconds(p99[i-1])).ratio(p99[i].Seconds(), p99[i-1].Seconds())
		}
	}
	return nil
}

// beside makes pods at a steady rate, beside a webhook or without one. It returns how long those took that a slow one
// would not let wait.
func (b *bench) beside(ctx context.Context, namespace string, asked, slow bool) (took []time.Duration, err error) {
	waits := map[string]bool{}
	for i := 0; i < steadyPods; i += webhookEvery {
		waits[load.PodName(i)] = true
	}
	if asked {
		hook, err := webhook.Start(ctx, b.rig.Dir, b.rig.Kube, func(ctx context.Context, pod string) {
			if slow && waits[pod] {
				_ = pause(ctx, webhookWait) // the API server has given up, which it says itself
			}
		})
		if err != nil {
			return nil, err
		}
		defer func() {
			if closed := hook.Close(ctx); err == nil {
				err = closed
			}
		}()
	}
	before, err := spent(b.rig, b.master)
	if err != nil {
		return nil, err
	}
	samples, err := steady(ctx, steadyPods, steadyInterval, func(i int) (sent, answered time.Time, err error) {
		return load.CreatePod(ctx, b.rig.Kube, namespace, i, b.Nodes)
	})
	if err != nil {
		return nil, err
	}
	if _, _, err := b.done(ctx, namespace, steadyPods); err != nil {
		return nil, err
	}
	b.pods += steadyPods
	after, err := spent(b.rig, b.master)
	if err != nil {
		return nil, err
	}
	b.report.disturbed(namespace, after.sub(before))
	_, whole, err := ways(samples, b.observer.Annotated, func(i int) load.Name {
		return load.Name{Namespace: namespace, Name: load.PodName(i)}
	})
	for i, d := range whole {
		if i%webhookEvery > 0 {
			took = append(took, d)
		}
	}
	return took, err
}
