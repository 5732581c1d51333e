package networks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// Config says what to measure.
type Config struct {
	Kinds   string // path of the manifest that declares UserDefinedNetworks
	Sizes   []int  // numbers of networks, ascending
	Rounds  int    // repetitions of each change
	Churn   int    // networks that are made and deleted at the end
	Systems []central.Release
}

// maxNetworks is how many networks the nodes' subnets have addresses for: in each, a network's exit has one, and every
// pod has one. Changes need some more.
const maxNetworks = 1000

// Check returns what is wrong with a Config.
func (c Config) Check() error {
	var errs []error
	before := 0
	for _, n := range c.Sizes {
		if n <= before || n > maxNetworks {
			errs = append(errs, fmt.Errorf("--networks %v: want ascending numbers of 1 to %d", c.Sizes, maxNetworks))
			break
		}
		before = n
	}
	if len(c.Sizes) == 0 || len(c.Systems) == 0 || c.Rounds < 1 {
		errs = append(errs, errors.New("--networks, --ovn, --networks-rounds: want at least one of each"))
	}
	if c.Churn < 0 || c.Churn%batch != 0 || c.Churn == batch { // they are counted after the first batch and the last
		errs = append(errs, fmt.Errorf("--networks-churn %d: want 0, or a multiple of %d from %d on", c.Churn, batch,
			2*batch))
	}
	return errors.Join(errs...)
}

// Run measures each release of OVN with a cluster of its own, and returns what it has measured also when it fails. It
// must run in network and mount namespaces of its own.
func Run(ctx context.Context, p rig.Programs, c Config, tell func(string)) (out *Results, err error) {
	out = &Results{}
	for _, s := range c.Systems {
		if err := measure(ctx, p, c, s, out, tell); err != nil {
			return out, fmt.Errorf("measuring OVN %s: %w", s.Version, err)
		}
	}
	return out, nil
}

// measure measures one release.
func measure(ctx context.Context, p rig.Programs, c Config, s central.Release, out *Results,
	tell func(string)) (err error) {
	tell("networks: OVN " + s.Version + ": starting everything")
	r := &run{Config: c, tell: tell, computed: load.NewTracker("the Southbound database"),
		installed: load.NewTracker("the chassis")}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.rig, err = rig.New(ctx, p); err != nil {
		return err
	}
	dir := filepath.Join(r.rig.Dir, "ovn")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if err := central.Mount(s.Root, dir); err != nil {
		return err
	}
	if r.system, err = central.New(s.Root, dir, "networks"); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	for _, n := range c.Sizes {
		tell(fmt.Sprintf("networks: OVN %s: %d networks", s.Version, n))
		result, err := r.size(ctx, n)
		if err != nil {
			return fmt.Errorf("%d networks: %w", n, err)
		}
		result.Version = s.Version
		out.Results = append(out.Results, result)
	}
	if c.Churn == 0 {
		return nil
	}
	tell(fmt.Sprintf("networks: OVN %s: %d networks are made and deleted", s.Version, c.Churn))
	churned, err := r.churn(ctx)
	if err != nil {
		return err
	}
	churned.Version = s.Version
	out.Churned = append(out.Churned, churned)
	return nil
}

// size makes so many networks, and measures them.
func (r *run) size(ctx context.Context, n int) (out Result, err error) {
	out.Networks = n
	if err := r.grow(ctx, n, &out); err != nil {
		return out, err
	}
	counts, err := r.count(ctx)
	if err != nil {
		return out, err
	}
	out.Each = counts.sub(r.empty).each(n + r.later)
	if out.Memory, err = r.memory(); err != nil {
		return out, err
	}
	for range r.Rounds {
		pod, err := r.podComes(ctx)
		if err != nil {
			return out, fmt.Errorf("a pod comes: %w", err)
		}
		network, err := r.networkComes(ctx)
		if err != nil {
			return out, fmt.Errorf("a network comes: %w", err)
		}
		out.Pods, out.Came = append(out.Pods, pod), append(out.Came, network)
	}
	out.Restart, err = r.restart(ctx)
	return out, err
}

// limit is how long a step may take.
const limit = 10 * time.Minute
