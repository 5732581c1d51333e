package bench

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// restarted is the namespace of the pods for the restart.
const restarted = "restart"

// restart measures a master that starts when nothing has to change: it must notice that, and write nothing.
func (b *bench) restart(ctx context.Context) error {
	if err := b.grow(ctx); err != nil {
		return err
	}
	before, err := spent(b.rig, nil)
	if err != nil {
		return err
	}
	if err := b.restartIdle(ctx); err != nil {
		return err
	}
	idle, err := b.master.Usage()
	if err != nil {
		return err
	}
	if err := b.restartWaiting(ctx); err != nil {
		return err
	}
	after, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	took := after.sub(before)
	took.master += idle.CPU
	b.report.disturbed("restart", took)
	return nil
}

// grow makes pods until there are as many as the restart needs.
func (b *bench) grow(ctx context.Context) error {
	if err := b.prepare(ctx, restarted); err != nil {
		return err
	}
	// At least one pod, so that the namespace has all its rows before the restart.
	missing := max(1, b.RestartPods-b.pods)
	before, err := b.master.Usage()
	if err != nil {
		return err
	}
	began, err := load.CreatePods(ctx, b.rig.Kube, restarted, missing, b.Nodes)
	if err != nil {
		return err
	}
	annotated, _, err := b.done(ctx, restarted, missing)
	if err != nil {
		return err
	}
	b.pods += missing
	b.grown = missing
	u, err := b.master.Usage()
	if err != nil {
		return err
	}
	calm, err := b.atRest(ctx)
	if err != nil {
		return err
	}
	b.report.add("restart", "burst up to that many pods", "%.0f pods/s", perSecond(missing, annotated.Sub(began))).
		beside("%d more, %d in all; %s of the master's CPU time each", missing, b.pods, perPod(u.CPU-before.CPU, missing))
	b.report.add("restart", "memory of the master before (RSS)", "%s", megabytes(calm.RSS)).beside(
		"just after the burst %s, at most %s; %d pods", megabytes(u.RSS), megabytes(u.Peak), b.pods)
	return nil
}

// atRest is what the master uses half a minute after a burst: it has returned the memory of garbage by then.
func (b *bench) atRest(ctx context.Context) (process.Usage, error) {
	select {
	case <-ctx.Done():
		return process.Usage{}, ctx.Err()
	case <-time.After(30 * time.Second):
	}
	return b.master.Usage()
}

// again stops the master and returns the counts before it starts again.
func (b *bench) again(ctx context.Context) (rig.Counts, error) {
	m := b.master
	b.master = nil
	if err := m.Stop(); err != nil {
		return rig.Counts{}, err
	}
	return b.rig.Counts(ctx, nil)
}

// restartIdle starts the master on an unchanged cluster. When it is ready, one new pod is created. Everything that the
// start had to write goes out before that pod's writes. So once these are seen, the counts are final.
func (b *bench) restartIdle(ctx context.Context) error {
	before, err := b.again(ctx)
	if err != nil {
		return err
	}
	if b.master, err = b.rig.StartMaster(ctx); err != nil {
		return err
	}
	ready, err := b.master.WaitReady(ctx)
	if err != nil {
		return err
	}
	const what = "on an unchanged cluster"
	b.report.add("restart", "start to /readyz ok, "+what, "%s",
		seconds(ready.Sub(b.master.Started))).beside("%d pods, %d nodes", b.pods, b.Nodes)
	sent, _, err := load.CreatePod(ctx, b.rig.Kube, restarted, b.grown, b.Nodes)
	if err != nil {
		return err
	}
	annotated, _, err := b.done(ctx, restarted, b.grown+1)
	if err != nil {
		return err
	}
	b.pods++
	b.report.add("restart", "then a new pod, create to annotation", "%s", milliseconds(annotated.Sub(sent)))
	return b.settled(ctx, what, before)
}

// restartWaiting starts the master after one pod was created without a master.
func (b *bench) restartWaiting(ctx context.Context) error {
	before, err := b.again(ctx)
	if err != nil {
		return err
	}
	if _, _, err := load.CreatePod(ctx, b.rig.Kube, restarted, b.grown+1, b.Nodes); err != nil {
		return err
	}
	if b.master, err = b.rig.StartMaster(ctx); err != nil {
		return err
	}
	annotated, ported, err := b.done(ctx, restarted, b.grown+2)
	if err != nil {
		return err
	}
	b.pods++
	const what = "with one pod waiting"
	b.report.add("restart", "start to that pod annotated, "+what, "%s", seconds(annotated.Sub(b.master.Started)))
	b.report.add("restart", "start to that pod in Northbound", "%s", seconds(ported.Sub(b.master.Started)))
	if _, err := b.master.WaitReady(ctx); err != nil {
		return err
	}
	return b.settled(ctx, what, before)
}

// Writes for a start and the one new pod.
const (
	ownPatches      = 1
	ownTransactions = 2 // the one that raises the leader epoch, and the pod's
	ownOperations   = 3 // the port's insert, its place on the switch, its address in the namespace's set
)

// settled reports writes other than the new pod's patch and transaction, of which there must be none, and the master's
// current cost.
func (b *bench) settled(ctx context.Context, what string, before rig.Counts) error {
	counts, err := b.rig.Counts(ctx, b.master)
	if err != nil {
		return err
	}
	wrote := counts.Sub(before)
	operations := wrote.Operations - ownOperations
	transactions := max(wrote.Transactions, wrote.Logged) - ownTransactions
	patches := max(wrote.Patches, wrote.PodPatches+wrote.NodePatches) - ownPatches
	b.report.add("restart", "written without need", "%d operations, %d patches", operations, patches).
		beside("beside the new pod's own %d and %d", ownOperations, ownPatches)
	if operations != 0 || transactions != 0 || patches != 0 {
		b.report.violate("restart %s: %d Northbound operations, %d transactions and %d patches without need, want 0", what,
			operations, transactions, patches)
	}
	u, err := b.master.Usage()
	if err != nil {
		return err
	}
	b.report.add("restart", "memory of the master after (RSS)", "%s", megabytes(u.RSS)).
		beside("at most %s; %d pods; %s of CPU time in %s", megabytes(u.Peak), b.pods, seconds(u.CPU),
			seconds(time.Since(b.master.Started)))
	return nil
}
