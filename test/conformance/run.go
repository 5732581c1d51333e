package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// program is Kubernetes' tests in bin/. runner runs several of them at a time.
const (
	program = "e2e.test"
	runner  = "ginkgo"
)

// wide is the beginning of the specs that need two nodes in each of three zones.
const (
	wide      = SIG + " Traffic Distribution"
	wideNodes = 2 * zones
)

// batch is the number of specs in a run of the runner. The results are recorded after each, so that an interrupted run
// can continue.
const batch = 30

// batchLimit is how long a batch may take. A spec that waits in vain takes some minutes.
const batchLimit = time.Hour

// Outcomes of a spec.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped" // the spec found that it does not apply
)

// Result is the outcome of a spec.
type Result struct {
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message,omitempty"` // of a failure, or the reason for skipping
}

// Results are the outcomes of all specs that were run, by name.
type Results map[string]Result

// Options configure a run.
type Options struct {
	Bin     string            // directory of the programs
	Work    string            // directory of reports, e2e.test's output and the results so far
	Sandbox string            // name of the sandbox
	OVN     string            // source of OVN, as in sandbox.Options.OVN
	Focus   *regexp.Regexp    // run only specs that it matches; nil: all
	Resume  bool              // keep the results so far, and run only specs without the expected result
	Failing map[string]string // the specs that are expected to fail
	Procs   int               // how many specs run at a time, except those that must run alone
	Version string            // of the product, for the report about ClusterNetworkPolicies
	Part    Part              // what the specs have to do with primary networks
	Kinds   string            // directory of the manifests of the kinds that declare networks
	Out     io.Writer         // gets progress messages
}

func (o Options) resultsFile() string { return filepath.Join(o.Work, "results.json") }

// expected reports whether a spec was run with the expected outcome.
func (o Options) expected(spec string, r Result) bool {
	_, known := o.Failing[spec]
	return r.State == Passed && !known || r.State == Failed && known
}

// Run runs the selected specs, a few at a time, and returns their outcomes, also if it is interrupted. It is an error,
// too, if the datapath had faults meanwhile.
func Run(ctx context.Context, o Options, specs []string) (Results, error) {
	if err := os.MkdirAll(o.Work, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of results: %w", err)
	}
	results := Results{}
	if !o.Resume {
		if err := os.Remove(o.trafficFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing an old count of connections: %w", err)
		}
	}
	if o.Resume {
		if err := results.read(o.resultsFile()); err != nil {
			return nil, err
		}
	}
	var todo []string
	for _, s := range specs {
		if !o.expected(s, results[s]) && (o.Focus == nil || o.Focus.MatchString(s)) {
			todo = append(todo, s)
		}
	}
	var errs []error
	for _, nodes := range []int{sandbox.DefaultNodes, wideNodes} {
		some := slices.DeleteFunc(slices.Clone(todo), func(s string) bool {
			return strings.HasPrefix(s, wide) != (nodes == wideNodes)
		})
		if len(some) > 0 && ctx.Err() == nil {
			errs = append(errs, runOn(ctx, o, nodes, some, results))
		}
	}
	return results, errors.Join(errs...)
}

// runOn runs specs on a sandbox with the given number of nodes.
func runOn(ctx context.Context, o Options, nodes int, specs []string, results Results) error {
	var s *beside
	b, err := up(ctx, o, nodes, func(b *bed, ctx context.Context, log *progress.Log) (err error) {
		if err := b.prepareSpecs(ctx, log); err != nil {
			return err
		}
		switch o.Part {
		case Inside:
			return b.prepareInside(ctx, log, o.Kinds)
		case Beside:
			s, err = b.prepareBeside(ctx, log, o.Kinds)
		}
		return err
	})
	if err != nil {
		return err
	}
	if s == nil {
		err = b.runAll(ctx, o, specs, results)
	} else {
		err = s.during(ctx, func() error { return b.runAll(ctx, o, specs, results) })
		s.total.Specs = len(specs)
		err = errors.Join(err, o.addTraffic(s.total))
	}
	if ctx.Err() == nil {
		err = errors.Join(err, b.CheckSwitches(ctx))
	}
	return errors.Join(err, b.down(ctx))
}

func (b *bed) runAll(ctx context.Context, o Options, todo []string, results Results) error {
	log := progress.New(o.Out)
	for from := 0; from < len(todo); from += batch {
		some := todo[from:min(from+batch, len(todo))]
		step := log.Begin(fmt.Sprintf("specs %d to %d of %d", from+1, from+len(some), len(todo)))
		err := step.End(b.runSome(ctx, o, some, results, step))
		for _, name := range some {
			if r, ok := results[name]; ok {
				fmt.Fprintf(o.Out, "          %-8s %5.0f s  %s\n", r.State, r.Seconds, name)
			}
		}
		if err := errors.Join(err, results.write(o.resultsFile()), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// runSome runs some specs. It is an error if the runner did not report results.
func (b *bed) runSome(ctx context.Context, o Options, specs []string, results Results, step *progress.Step) error {
	const name = "report.json"
	report := filepath.Join(o.Work, name)
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old report: %w", err)
	}
	args := append([]string{
		filepath.Join(o.Bin, runner), "-v", "--no-color", "--procs=" + strconv.Itoa(o.Procs), "--timeout=" +
			batchLimit.String(),
		"--output-dir=" + o.Work, "--json-report=" + name,
	}, focuses(specs)...)
	args = append(args, filepath.Join(o.Bin, program), "--", "--provider=local", "--kubeconfig="+
		b.Control.AdminKubeconfig(),
		"--kubectl-path="+b.kubectl, "--num-nodes="+strconv.Itoa(len(b.Nodes)), "--e2e-verify-service-account=false",
		"--e2e-output-dir="+o.Work)
	cmd := b.Control.NetworkCommand(ctx, args...)
	cmd.Dir = o.Work
	// a process group for the runner and its children
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // they clean up and report
	cmd.WaitDelay = time.Minute
	output, err := os.OpenFile(filepath.Join(o.Work, "output.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("keeping the output of %s: %w", program, err)
	}
	defer output.Close()
	cmd.Stdout = io.MultiWriter(output, &follower{step: step})
	cmd.Stderr = cmd.Stdout
	ended := cmd.Run() // the exit code says that specs failed, and so does the report
	records, err := readReport(report)
	if err != nil {
		return errors.Join(err, ended)
	}
	if n := results.add(records, specs); n != len(specs) && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("running %s: it reported %d of %d specs; its output is in %s", program, n, len(specs),
			output.Name()), ended)
	}
	return nil
}

// focuses returns the flags that select specs by their names.
func focuses(specs []string) []string {
	var flags []string
	for _, s := range specs {
		flags = append(flags, "--focus="+regexp.QuoteMeta(s)+"$")
	}
	return flags
}

// add records the outcomes of the wanted specs, and returns for how many specs they are known.
func (r Results) add(records []record, want []string) int {
	n := 0
	for _, s := range want {
		for _, have := range records {
			if have.ended() && have.name() == s {
				r[s] = Result{State: state(have.State), Seconds: have.RunTime.Seconds(), Message: have.Failure.Message}
				n++
			}
		}
	}
	return n
}

// state maps ginkgo's states. A spec that panicked or timed out has failed.
func state(ginkgo string) string {
	if ginkgo == Passed || ginkgo == Skipped {
		return ginkgo
	}
	return Failed
}

func (r Results) read(file string) error {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return fmt.Errorf("reading the results so far: %w", err)
	}
	return nil
}

func (r Results) write(file string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("recording the results: %w", err)
	}
	return nil
}

// follower reads the names of the running specs from e2e.test's output.
type follower struct {
	step *progress.Step
	rest string
	done int
}

func (f *follower) Write(p []byte) (int, error) {
	f.rest += string(p)
	for {
		line, rest, ok := strings.Cut(f.rest, "\n")
		if !ok {
			return len(p), nil
		}
		f.rest = rest
		if strings.HasPrefix(line, "•") {
			f.done++
		}
		if strings.HasPrefix(line, SIG) {
			f.step.Detail("%d done, now %s", f.done, line)
		}
	}
}
