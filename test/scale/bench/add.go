package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/northbound-net/northbound/test/scale/attach"
)

const (
	warmAdds    = 3       // not measured, for each kind
	shimRuns    = 200     // for each program
	maxAdds     = 60      // the size of the node's subnet limits it, see package attach
	maxShimSize = 5 << 20 // bytes
)

// addPhases are the agent's phases of ADD in their order.
func addPhases() []string { return []string{"agent", "annotation", "interface", "port", "flows"} }

// adds is the phase "add": it attaches pods to a real node, in turn with the CNI plugin and with the bare minimum.
type adds struct {
	Config
	bed    *attach.Bed
	report *Report

	known, fresh []attach.Timing     // pods that OVN knew before; pods created at that moment
	bare         []attach.BareTiming // in turn with known
	dels         []time.Duration
}

func runAdds(ctx context.Context, c Config, r *Report, progress io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, phaseTimeout)
	defer cancel()
	a := &adds{Config: c, report: r}
	if err := a.shim(ctx); err != nil {
		return err
	}
	if a.bed, err = attach.New(ctx, "bench", c.Bin, progress); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.bed.Close()) }()
	for _, step := range []func(context.Context) error{a.prepare, a.inTurn, a.atOnce, a.remove} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	a.tell()
	return nil
}

func (a *adds) shim(ctx context.Context) error {
	plugin, hello, err := attach.Compare(ctx, a.Plugin(), a.Hello, shimRuns)
	if err != nil {
		return err
	}
	own, other := percentile(plugin.Runs, 50), percentile(hello.Runs, 50)
	a.report.add("add", "the plugin's process alone, p50 p95 p99", "%s", percentiles(plugin.Runs)).
		beside("hello-world in Go %s", percentiles(hello.Runs)).ratio(float64(own), float64(other))
	a.report.add("add", "the plugin's size", "%.1f MB", float64(plugin.Size)/1e6).
		beside("hello-world in Go %.1f MB", float64(hello.Size)/1e6).ratio(float64(plugin.Size), float64(hello.Size))
	if plugin.Size > maxShimSize {
		a.report.violate("add: %s has %d bytes, want at most %d", a.Plugin(), plugin.Size, maxShimSize)
	}
	return nil
}

// prepare makes everything that exists before a runtime calls the plugin: pods with addresses and logical ports, and
// network namespaces.
func (a *adds) prepare(ctx context.Context) error {
	n := warmAdds + a.Adds
	if err := errors.Join(a.bed.Netns(ctx, attach.Namespace, n+a.Adds), a.bed.Netns(ctx, attach.BareNamespace,
		n)); err != nil {
		return err
	}
	if err := a.bed.CreateBare(n); err != nil {
		return err
	}
	for i := range n {
		if err := a.bed.Create(ctx, i); err != nil {
			return err
		}
	}
	return errors.Join(a.bed.WaitBound(ctx, attach.Namespace, n), a.bed.WaitBound(ctx, attach.BareNamespace, n))
}

// inTurn attaches pods alternately with the plugin and by hand, so that both work on the same node.
func (a *adds) inTurn(ctx context.Context) error {
	for i := range warmAdds + a.Adds {
		t, err := a.bed.Add(ctx, i)
		if err != nil {
			return err
		}
		bare, err := a.bed.Bare(ctx, i)
		if err != nil {
			return err
		}
		if i >= warmAdds {
			a.known, a.bare = append(a.known, t), append(a.bare, bare)
		}
	}
	return nil
}

// atOnce calls the plugin for pods that were just created.
func (a *adds) atOnce(ctx context.Context) error {
	for i := range a.Adds {
		if err := a.bed.Create(ctx, warmAdds+a.Adds+i); err != nil {
			return err
		}
		t, err := a.bed.Add(ctx, warmAdds+a.Adds+i)
		if err != nil {
			return err
		}
		a.fresh = append(a.fresh, t)
	}
	return nil
}

// remove detaches all pods, and checks counts.
func (a *adds) remove(ctx context.Context) error {
	want := warmAdds + 2*a.Adds
	have, err := a.bed.Ports(ctx)
	if err != nil {
		return err
	}
	for i := range want {
		took, err := a.bed.Del(ctx, i)
		if err != nil {
			return err
		}
		a.dels = append(a.dels, took)
	}
	left, err := a.bed.Ports(ctx)
	if err != nil {
		return err
	}
	if have != want || left != 0 {
		a.report.violate("add: %d ports of containers after %d ADDs, and %d after as many DELs, want 0", have, want, left)
	}
	return nil
}

func (a *adds) tell() {
	whole := func(t attach.Timing) time.Duration { return t.Whole }
	outside := func(t attach.Timing) time.Duration { return t.Whole - t.Served }
	own, bare := each(a.known, whole), each(a.bare, attach.BareTiming.Whole)
	a.report.add("add", "ADD of a pod that OVN knows, p50 p95 p99", "%s", percentiles(own)).
		beside("bare minimum: veth, port, ovn-installed %s; %d of each", percentiles(bare), a.Adds).
		ratio(float64(percentile(own, 50)), float64(percentile(bare, 50)))
	a.report.add("add", "of it outside the agent: process, socket", "%s", percentiles(each(a.known, outside)))
	beside := map[string]func(attach.BareTiming) time.Duration{
		"interface": func(t attach.BareTiming) time.Duration { return t.Veth },
		"port":      func(t attach.BareTiming) time.Duration { return t.Port },
		"flows":     func(t attach.BareTiming) time.Duration { return t.Installed },
	}
	for _, p := range addPhases() {
		own := each(a.known, phase(p))
		l := a.report.add("add", "of it phase "+p, "%s", percentiles(own))
		if f := beside[p]; f != nil {
			bare := each(a.bare, f)
			l.beside("bare %s", percentiles(bare)).ratio(float64(percentile(own, 50)), float64(percentile(bare, 50)))
		}
	}
	a.report.add("add", "ADD of a pod made at that moment", "%s", percentiles(each(a.fresh, whole)))
	for _, p := range addPhases() {
		a.report.add("add", "of it phase "+p, "%s", percentiles(each(a.fresh, phase(p))))
	}
	a.report.add("add", "DEL", "%s", percentiles(a.dels)).beside("%d of them", len(a.dels))
	a.checkPhases()
}

// checkPhases checks that the agent reported every phase, and no other.
func (a *adds) checkPhases() {
	for _, t := range slices.Concat(a.known, a.fresh) {
		for name := range t.Phases {
			if !slices.Contains(addPhases(), name) {
				a.report.violate("add: the agent reports a phase %q that this table does not have", name)
				return
			}
		}
		if len(t.Phases) != len(addPhases()) || t.Served <= 0 {
			a.report.violate("add: the agent reports %d phases of ADD and %s in all, want %d phases", len(t.Phases), t.Served,
				len(addPhases()))
			return
		}
	}
}

func phase(name string) func(attach.Timing) time.Duration {
	return func(t attach.Timing) time.Duration { return t.Phases[name] }
}

// each returns one of the durations of every sample.
func each[T any](samples []T, f func(T) time.Duration) []time.Duration {
	out := make([]time.Duration, 0, len(samples))
	for _, s := range samples {
		out = append(out, f(s))
	}
	return out
}

// checkAdds returns what is wrong with the part of a Config for "add".
func (c Config) checkAdds() error {
	if c.Adds < 1 || c.Adds > maxAdds {
		return fmt.Errorf("--adds %d: want 1 to %d", c.Adds, maxAdds)
	}
	return nil
}
