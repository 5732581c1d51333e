package policyshape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
)

// Config says what to measure.
type Config struct {
	Sizes  []Size
	Shapes []Shape
	Rounds int           // repetitions of each event
	Limit  time.Duration // of each load
}

// Sample is what one event, or the median of several, has cost.
type Sample struct {
	Northd, Controller, OpenFlow time.Duration // CPU time of ovn-northd, ovn-controller, ovs-vswitchd
	Computed, Installed          time.Duration // until the Southbound database has it, and the first chassis its flows
	NorthdAnew, ControllerAnew   bool          // all logical flows, all flows were computed anew
	Flows                        int           // in br-int, afterwards: in a median, the difference
}

// Result is what was measured of one load.
type Result struct {
	Version        string
	Shape          Shape
	Size           Size
	Loads          string // load averages before and after
	Failure        string // what the measurement ended with, "" if it is complete
	Rounds         int    // that are complete
	LogicalFlows   int
	NorthdStart    Sample // until the Southbound database had everything
	Start          Sample // until ovn-controller had installed everything
	Flows          int
	NorthdRSS      int64
	ControllerRSS  int64
	ControllerPeak int64
	OpenFlowRSS    int64
	NorthdAnew     Sample // recompute of ovn-northd
	ControllerAnew Sample // recompute of ovn-controller
	Stopwatches    map[string]int
	Events         map[string]Sample
}

// Run measures each load on a system, and hands out each result as it is there. It must run in network and mount
// namespaces of its own. w gets progress messages.
func Run(ctx context.Context, s central.Release, c Config, w io.Writer, done func(Result) error) (err error) {
	dir, err := os.MkdirTemp("", "policyshape")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := central.Mount(s.Root, dir); err != nil {
		return err
	}
	for i, size := range c.Sizes {
		for _, shape := range c.Shapes {
			system, err := central.New(s.Root, dir, fmt.Sprintf("%d-%s", i, shape))
			if err != nil {
				return err
			}
			r := &run{ovn: &ovn{System: system}, cluster: newCluster(size, shape), rounds: c.Rounds, limit: c.Limit,
				w: w, began: time.Now()}
			r.result = Result{Version: s.Version, Shape: shape, Size: size, Events: map[string]Sample{},
				Stopwatches: map[string]int{}}
			if err := errors.Join(r.all(ctx), done(r.result)); err != nil {
				return err
			}
		}
	}
	return nil
}

// run is the measurement of one load.
type run struct {
	*ovn
	cluster *cluster
	meter   *meter
	rounds  int
	limit   time.Duration
	w       io.Writer
	began   time.Time
	result  Result
}

func (r *run) tell(format string, args ...any) {
	fmt.Fprintf(r.w, "%7.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// all measures one load. What keeps it from that is part of the result, unless the whole run must end.
func (r *run) all(ctx context.Context) error {
	r.tell("OVN %s: %s", r.result.Version, r.cluster)
	r.result.Loads = loads()
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	err := r.measure(limited)
	if err != nil {
		r.result.Failure = fmt.Sprintf("%s; ovn-controller had used %s", err, r.usage())
		r.tell("%s", r.result.Failure)
	}
	r.result.Loads += " to " + loads()
	if r.meter != nil {
		r.meter.close()
	}
	return errors.Join(ctx.Err(), r.close())
}

// usage describes what ovn-controller has used so far.
func (r *run) usage() string {
	if r.first == nil || r.first.Controller == nil {
		return "nothing"
	}
	u, err := r.first.Controller.Usage()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s of CPU time, %d MB", u.CPU, u.Peak>>20)
}

func loads() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

func (r *run) measure(ctx context.Context) error {
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.chassis(ctx); err != nil {
		return err
	}
	if err := r.memory(); err != nil {
		return err
	}
	if err := r.events(ctx); err != nil {
		return err
	}
	return r.anew(ctx)
}

// fill fills the Northbound database, and then starts ovn-northd.
func (r *run) fill(ctx context.Context) (err error) {
	if err = r.central(ctx); err != nil {
		return err
	}
	if r.meter, err = newMeter(ctx, r.ovn); err != nil {
		return err
	}
	for _, ops := range slices.Concat(r.cluster.base(), r.cluster.policies()) {
		if err := r.nb.Transact(northbound, anything(ops)...); err != nil {
			return fmt.Errorf("filling the Northbound database: %w", err)
		}
	}
	r.tell("the Northbound database is full")
	began := time.Now()
	if err := r.startNorthd(); err != nil {
		return err
	}
	at, err := r.sync(ctx, r.meter.computed)
	if err != nil {
		return err
	}
	r.result.NorthdStart.Computed = at.Sub(began)
	after, err := r.meter.settle(ctx)
	r.result.NorthdStart.Northd = after.northd
	r.tell("ovn-northd has filled the Southbound database in %s, %s of CPU time", at.Sub(began), after.northd)
	return err
}

// sync increments nb_cfg and waits for it.
func (r *run) sync(ctx context.Context, t *load.Tracker) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	r.meter.config++
	if err := r.nb.Transact(northbound, bump()); err != nil {
		return time.Time{}, err
	}
	return t.WaitName(ctx, load.Name{Name: strconv.Itoa(r.meter.config)})
}

// chassis makes the fake chassis, and then starts the real one.
func (r *run) chassis(ctx context.Context) error {
	if err := r.fakeChassis(r.cluster); err != nil {
		return err
	}
	if err := r.startSwitch(ctx, r.cluster.Pods+interfacesPerRound*r.rounds); err != nil {
		return err
	}
	if _, err := r.sync(ctx, r.meter.computed); err != nil {
		return err
	}
	before, err := r.meter.settle(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := r.first.StartController(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	at, err := r.meter.installed.Wait(limited, "interface", r.cluster.Pods)
	if err != nil {
		return fmt.Errorf("waiting until ovn-controller has installed everything: %w", err)
	}
	after, err := r.meter.settle(ctx)
	if err != nil {
		return err
	}
	used := after.sub(before)
	r.result.Start = Sample{Installed: at.Sub(began), Controller: used.controller, OpenFlow: used.openflow,
		Northd: used.northd}
	if _, err = r.sync(ctx, r.meter.installed); err != nil {
		return err
	}
	if r.result.Flows, err = r.first.Flows(ctx); err != nil {
		return err
	}
	r.result.LogicalFlows, err = r.Count(ctx, "Logical_Flow")
	r.tell("ovn-controller has installed %d flows of %d logical flows in %s, %s of CPU time", r.result.Flows,
		r.result.LogicalFlows, at.Sub(began), used.controller)
	return err
}

func (r *run) memory() error {
	for p, rss := range map[*process.Process]*int64{r.northd: &r.result.NorthdRSS,
		r.first.OpenFlow: &r.result.OpenFlowRSS, r.first.Controller: &r.result.ControllerRSS} {
		u, err := p.Usage()
		if err != nil {
			return err
		}
		*rss = u.RSS
		if p == r.first.Controller {
			r.result.ControllerPeak = u.Peak
		}
	}
	return nil
}

// events measures every event, as often as asked for.
func (r *run) events(ctx context.Context) error {
	samples := map[string][]Sample{}
	defer func() {
		for name, all := range samples {
			r.result.Events[name] = median(all)
		}
	}()
	flows := r.result.Flows
	for i := range r.rounds {
		for _, s := range r.cluster.round(i) {
			sample, err := r.meter.change(ctx, s)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", s.name, err)
			}
			sample.Flows, flows = sample.Flows-flows, sample.Flows
			if s.name == "" {
				continue
			}
			samples[s.name] = append(samples[s.name], sample)
			r.tell("%s: %+v", s.name, sample)
		}
		r.result.Rounds++
	}
	return nil
}

// stopwatches are those of ovn-controller that are read after it has computed everything anew.
func stopwatches() []string { return []string{"flow-generation", "flow-installation"} }

// anew measures what computing everything anew costs.
func (r *run) anew(ctx context.Context) error {
	if _, err := r.Appctl(ctx, "controller", "stopwatch/reset"); err != nil {
		return err
	}
	for daemon, out := range map[string]*Sample{"northd": &r.result.NorthdAnew, "controller": &r.result.ControllerAnew} {
		var all []Sample
		for range 3 {
			before, err := r.meter.settle(ctx)
			if err != nil {
				return err
			}
			if _, err := r.Appctl(ctx, daemon, "inc-engine/recompute"); err != nil {
				return err
			}
			after, err := r.meter.settle(ctx)
			if err != nil {
				return err
			}
			used := after.sub(before)
			all = append(all, Sample{Northd: used.northd, Controller: used.controller, OpenFlow: used.openflow})
		}
		*out = median(all)
		r.tell("%s anew: %+v", daemon, *out)
	}
	for _, s := range stopwatches() {
		n, err := r.meter.longest(ctx, "controller", s)
		if err != nil {
			return err
		}
		r.result.Stopwatches[s] = n
	}
	return nil
}

// Validate returns what is wrong with a Config.
func (c Config) Validate() error {
	var errs []error
	if c.Rounds < 1 {
		errs = append(errs, fmt.Errorf("--rounds %d: want at least 1", c.Rounds))
	}
	for _, s := range c.Sizes {
		if s.Switches < 3*perSelector || s.Switches > 255 || s.Pods < 20 || s.Pods+interfacesPerRound*c.Rounds > 250 ||
			s.Policies < 200 {
			errs = append(errs, fmt.Errorf("--switches %d --pods %d --policies %d: want 15 to 255, 20 to 200, at least 200",
				s.Switches, s.Pods, s.Policies))
		}
	}
	for _, s := range c.Shapes {
		if s != Groups && s != Sets && s != Addresses {
			errs = append(errs, fmt.Errorf("--shapes %s: want %s, %s or %s", s, Groups, Sets, Addresses))
		}
	}
	return errors.Join(errs...)
}
