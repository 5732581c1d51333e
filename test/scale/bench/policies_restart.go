package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
)

// restartRounds is how often the master restarts, with policies and without.
const restartRounds = 3

// restarts measures restarts at which nothing has to change: with policies, and then, with the same pods, without.
func (p *policies) restarts(ctx context.Context) error {
	each := max(policyPods, p.RestartPods/len(p.namespaces))
	if err := p.growTo(ctx, each); err != nil {
		return err
	}
	number := max(policiesEach, each/podsPerPolicy)
	if _, err := load.CreatePolicies(ctx, p.rig.Kube, policiesOf(p.namespaces, policiesEach, number)); err != nil {
		return err
	}
	if _, err := p.written(ctx, number); err != nil {
		return err
	}
	size := fmt.Sprintf("%d pods, %d policies, %d nodes", each*len(p.namespaces), number*len(p.namespaces)+1, p.Nodes)
	with, err := p.restartsOf(ctx, "with policies")
	if err != nil {
		return err
	}
	if err := p.removePolicies(ctx); err != nil {
		return err
	}
	without, err := p.restartsOf(ctx, "without policies")
	if err != nil {
		return err
	}
	for _, l := range []struct {
		what          string
		with, without time.Duration
	}{
		{"restart: start to /readyz ok, median", percentile(with.ready, 50), percentile(without.ready, 50)},
		{"CPU time of the master until then, median", percentile(with.cpu, 50), percentile(without.cpu, 50)},
	} {
		p.report.add(phasePolicies, l.what, "%s", seconds(l.with)).
			beside("without policies %s; %d each; %s", seconds(l.without), restartRounds, size).
			ratio(float64(l.with), float64(l.without))
	}
	p.report.add(phasePolicies, "written without need", "%d operations, %d patches", with.operations, with.patches).
		beside("without policies %d and %d; in %d restarts each", without.operations, without.patches, restartRounds)
	p.report.add(phasePolicies, "memory of the master (RSS); at most", "%s; %s", megabytes(with.rss),
		megabytes(with.peak)).
		beside("without policies %s; %s", megabytes(without.rss), megabytes(without.peak))
	return nil
}

// removePolicies removes all policies, and waits until their ACLs are gone.
func (p *policies) removePolicies(ctx context.Context) error {
	if err := load.DeletePolicies(ctx, p.rig.Kube, append([]string{lonePolicy}, p.namespaces...)); err != nil {
		return err
	}
	for p.seen.ACLs.Load() > 0 {
		if err := pause(ctx, logPoll); err != nil {
			return fmt.Errorf("waiting for %d ACLs of policies to go: %w", p.seen.ACLs.Load(), err)
		}
	}
	return p.freePod(ctx)
}

// restartCosts is what restarts took.
type restartCosts struct {
	ready, cpu          []time.Duration
	rss, peak           int64 // of the last
	operations, patches int   // without need, in all
}

// restartsOf measures restarts. After each a pod is made that no policy concerns: everything that the start had to
// write goes out before that pod's writes.
func (p *policies) restartsOf(ctx context.Context, what string) (c restartCosts, err error) {
	start, err := spent(p.rig, nil)
	if err != nil {
		return c, err
	}
	for range restartRounds {
		before, err := p.again(ctx)
		if err != nil {
			return c, err
		}
		if p.master, err = p.rig.StartMaster(ctx); err != nil {
			return c, err
		}
		ready, err := p.master.WaitReady(ctx)
		if err != nil {
			return c, err
		}
		u, err := p.master.Usage()
		if err != nil {
			return c, err
		}
		c.ready, c.cpu = append(c.ready, ready.Sub(p.master.Started)), append(c.cpu, u.CPU)
		c.rss, c.peak = u.RSS, u.Peak
		if err := p.freePod(ctx); err != nil {
			return c, err
		}
		counts, err := p.rig.Counts(ctx, p.master)
		if err != nil {
			return c, err
		}
		wrote := counts.Sub(before)
		c.operations += wrote.Operations - ownOperations
		c.patches += max(wrote.Patches, wrote.PodPatches+wrote.NodePatches) - ownPatches
	}
	end, err := spent(p.rig, nil)
	if err != nil {
		return c, err
	}
	took := end.sub(start)
	for _, cpu := range c.cpu {
		took.master += cpu
	}
	p.report.disturbed("restart "+what, took)
	if c.operations != 0 || c.patches != 0 {
		p.report.violate("restart %s: %d Northbound operations and %d patches without need, want 0", what, c.operations,
			c.patches)
	}
	return c, nil
}
