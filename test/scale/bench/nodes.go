package bench

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// phaseNodes measures Nodes that come in a burst, and then a master that has nothing to do.
const phaseNodes = "nodes"

// maxTransactionsPerNode limits the transactions of Nodes that come in a burst.
const maxTransactionsPerNode = 0.5

// idleFor is how long a master that has nothing to do is watched.
const idleFor = time.Minute

// nodes makes as many Nodes again as there are.
func (b *bench) nodes(ctx context.Context) error {
	if err := b.prepare(ctx, phaseNodes); err != nil {
		return err
	}
	counts, err := b.rig.Counts(ctx, b.master)
	if err != nil {
		return err
	}
	before, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := load.Parallel(ctx, b.Nodes, func(ctx context.Context, i int) error {
		return load.Node(ctx, b.rig.Kube, b.Nodes+i)
	}); err != nil {
		return err
	}
	if err := load.WaitNodes(ctx, b.rig.Kube, 2*b.Nodes); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := spent(b.rig, b.master)
	if err != nil {
		return err
	}
	if _, err := b.atRest(ctx); err != nil { // by then all rows are written, too
		return err
	}
	now, err := b.rig.Counts(ctx, b.master)
	if err != nil {
		return err
	}
	wrote, cost := now.Sub(counts), after.sub(before)
	b.report.disturbed(phaseNodes, cost)
	b.report.add(phaseNodes, "until all have a subnet", "%s", seconds(took)).
		beside("%d nodes come to %d", b.Nodes, b.Nodes)
	b.report.add(phaseNodes, "Northbound transactions", "%d", wrote.Transactions).beside(
		"%d operations, %d patches of nodes", wrote.Operations, wrote.NodePatches)
	b.report.add(phaseNodes, "CPU time of the master", "%s", seconds(cost.master)).beside("%s", cost)
	if most := maxTransactionsPerNode * float64(b.Nodes); float64(wrote.Transactions) > most+1 {
		b.report.violate("nodes: %d transactions for %d nodes, want at most %.0f", wrote.Transactions, b.Nodes, most+1)
	}
	return b.idle(ctx, now)
}

// idle reports what a master at rest uses while nothing changes. counts are those so far.
func (b *bench) idle(ctx context.Context, counts rig.Counts) error {
	before, err := b.master.Usage()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleFor):
	}
	after, err := b.master.Usage()
	if err != nil {
		return err
	}
	now, err := b.rig.Counts(ctx, b.master)
	if err != nil {
		return err
	}
	wrote := now.Sub(counts)
	b.report.add(phaseNodes, "CPU time of the master in a minute without changes", "%s", seconds(after.CPU-before.CPU)).
		beside("%d pods, %d nodes; %d transactions, %d patches", b.pods, 2*b.Nodes, wrote.Transactions, wrote.Patches)
	if wrote.Transactions != 0 || wrote.Patches != 0 {
		b.report.violate("nodes: %d transactions and %d patches in a minute without changes, want 0", wrote.Transactions,
			wrote.Patches)
	}
	return nil
}
