package bench

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// backlog measures a master that starts when pods are already waiting.
func (b *bench) backlog(ctx context.Context) error {
	const namespace = "backlog"
	if err := load.Namespace(ctx, b.rig.Kube, namespace); err != nil {
		return err
	}
	if _, err := load.CreatePods(ctx, b.rig.Kube, namespace, b.Pods, b.Nodes); err != nil {
		return err
	}
	before, err := b.mark(ctx)
	if err != nil {
		return err
	}
	if b.master, err = b.rig.StartMaster(ctx); err != nil {
		return err
	}
	return b.throughput(ctx, namespace, b.master.Started, before)
}

// burst measures a running master while many pods are created at once.
func (b *bench) burst(ctx context.Context) error {
	const namespace = "burst"
	if err := b.prepare(ctx, namespace); err != nil {
		return err
	}
	before, err := b.mark(ctx)
	if err != nil {
		return err
	}
	began, err := load.CreatePods(ctx, b.rig.Kube, namespace, b.Pods, b.Nodes)
	if err != nil {
		return err
	}
	created := time.Since(began)
	if err := b.throughput(ctx, namespace, began, before); err != nil {
		return err
	}
	b.report.add(namespace, "pods created meanwhile", "%.0f pods/s", perSecond(b.Pods, created))
	return nil
}

// moment is the cost and the counts up to a moment.
type moment struct {
	cost   cost
	counts rig.Counts
}

func (b *bench) mark(ctx context.Context) (m moment, err error) {
	if m.counts, err = b.rig.Counts(ctx, b.master); err != nil {
		return m, err
	}
	m.cost, err = spent(b.rig, b.master)
	return m, err
}

// throughput waits for the pods of a namespace and reports how long that took and what it cost.
func (b *bench) throughput(ctx context.Context, namespace string, began time.Time, before moment) error {
	annotated, ported, err := b.done(ctx, namespace, b.Pods)
	if err != nil {
		return err
	}
	c, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	counts, err := b.rig.Counts(ctx, b.master)
	if err != nil {
		return err
	}
	b.pods += b.Pods
	wrote := counts.Sub(before.counts)
	b.speed(namespace, "until all are annotated", annotated.Sub(began))
	b.speed(namespace, "until all are in Northbound", ported.Sub(began))
	rate := perSecond(b.Pods, annotated.Sub(began))
	if limit := b.limits.both(); limit > 0 && namespace == "burst" {
		b.report.add(namespace, "the same, against what one API server can do", "%.0f pods/s", rate).
			beside("a creation and a patch each, raw: %.0f/s", limit).ratio(rate, limit)
	}
	b.report.add(namespace, "Northbound transactions", "%.3f a pod", float64(wrote.Transactions)/float64(b.Pods)).
		beside("%d sent, %d refused, %d in the database's log", wrote.Transactions, wrote.Refused, wrote.Logged)
	b.report.add(namespace, "Northbound operations", "%.2f a pod", float64(wrote.Operations)/float64(b.Pods)).
		beside("%d in all", wrote.Operations)
	b.report.add(namespace, "annotation patches", "%.2f a pod", float64(wrote.PodPatches)/float64(b.Pods)).
		beside("%d of pods, %d of nodes, %d retried", wrote.PodPatches, wrote.NodePatches, wrote.Retried)
	spentNow := c.sub(before.cost)
	b.report.disturbed(namespace, spentNow)
	b.report.add(namespace, "CPU time of the master", "%s a pod", perPod(spentNow.master, b.Pods)).
		beside("of the API server %s a pod; %s", perPod(spentNow.apiServer, b.Pods), spentNow)
	if raw := b.limits.patchCPU; raw > 0 {
		all := spentNow.ours()
		b.report.add(namespace, "CPU time of everyone here", "%s a pod", perPod(all, b.Pods)).
			beside("a raw patch takes %s; the ratio if nothing else uses the processors", perPod(raw, 1)).
			ratio(perSecond(b.Pods, all), perSecond(1, raw))
	}
	u, err := b.master.Usage()
	if err != nil {
		return err
	}
	b.report.add(namespace, "memory of the master (RSS)", "%s", megabytes(u.RSS)).beside("at most %s; %d pods",
		megabytes(u.Peak), b.pods)
	b.checkWrites(namespace, wrote)
	return nil
}

// speed reports a rate and compares it with the lower raw limit.
func (b *bench) speed(phase, what string, took time.Duration) {
	rate := perSecond(b.Pods, took)
	l := b.report.add(phase, what, "%.0f pods/s (%s)", rate, seconds(took))
	if limit := b.limits.lower(); limit > 0 {
		l.beside("lower raw limit %.0f/s", limit).ratio(rate, limit)
	}
}

// checkWrites checks the counts of a burst or backlog.
func (b *bench) checkWrites(phase string, wrote rig.Counts) {
	sent := max(wrote.Transactions, wrote.Logged)
	if most := maxTransactionsPerPod * float64(b.Pods); float64(sent) > most {
		b.report.violate("%s: %d Northbound transactions for %d pods, want at most %.0f", phase, sent, b.Pods, most)
	}
	if wrote.PodPatches != b.Pods {
		b.report.violate("%s: %d patches of pods, want one for each of %d pods", phase, wrote.PodPatches, b.Pods)
	}
}
