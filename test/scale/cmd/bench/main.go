// Command bench measures `ovnkube master` and the CNI plugin on this machine and prints a table: throughput, latency,
// restart, services, policies, ADD, growth, and the limits of the machine for comparison. It exits non-zero if a count
// is wrong. It needs root, for a network namespace of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/scale/bench"
	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/netns"
)

// The exit codes.
const (
	failed = 1
	usage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, w io.Writer) int {
	c, err := parse(args, w)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(w, "bench:", err)
		return usage
	}
	// Downloads happen outside: the network namespace has no connection to the internet.
	if c.NeedsNode() {
		if _, err := sandbox.Provide(ctx, sandbox.Options{BinDir: c.Bin, Progress: w}); err != nil {
			fmt.Fprintln(w, "bench:", err)
			return failed
		}
	}
	if c.needsReleases() {
		releases, err := provide(ctx, c.choices, w)
		if err == nil {
			c.take(releases)
			err = c.Validate()
		}
		if err != nil {
			fmt.Fprintln(w, "bench:", err)
			return failed
		}
	}
	inside, code, err := netns.Enter()
	if err != nil {
		fmt.Fprintln(w, "bench:", err)
		return failed
	}
	if !inside {
		return code
	}
	report, err := bench.Run(ctx, c.Config, w)
	printed := report.Print(out)
	if err == nil && c.Scale.Write != "" && report.Scaled != nil {
		err = report.Scaled.Write()
	}
	if err := errors.Join(err, printed); err != nil {
		fmt.Fprintln(w, "bench:", err)
		return failed
	}
	if len(report.Violations) > 0 {
		return failed
	}
	return 0
}

// needsReleases reports whether a phase measures releases of OVN, which are still to be provided.
func (c config) needsReleases() bool { return c.Runs("northd") || c.Runs("networks") }

// take has the phases that measure releases of OVN measure these.
func (c *config) take(releases []central.Release) {
	c.Northd.Systems, c.Networks.Systems = releases, releases
}

// provide returns the root filesystems of releases, and makes them first if need be.
func provide(ctx context.Context, choices []rootfs.Choice, w io.Writer) (out []central.Release, err error) {
	for _, choice := range choices {
		var r central.Release
		if r.Root, err = rootfs.Ensure(ctx, rootfs.DefaultCache, choice, progress.New(w)); err != nil {
			return nil, err
		}
		if r.Version, err = rootfs.Version(ctx, r.Root, "ovn-common"); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// config is the command line.
type config struct {
	bench.Config
	choices []rootfs.Choice // of OVN, in the phases that measure releases
}

// parse reads the command line. It looks for programs in the directory of this one.
func parse(args []string, w io.Writer) (c config, err error) {
	self, err := os.Executable()
	if err != nil {
		return c, fmt.Errorf("finding this program: %w", err)
	}
	bin := filepath.Dir(self)
	var only, sizes, nodes, ovn, many string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(w)
	f.IntVar(&c.Pods, "pods", 2000, "`NUMBER` of pods in each of the raw limits, the backlog and the burst")
	f.IntVar(&c.Nodes, "nodes", 100, "`NUMBER` of fake nodes")
	f.IntVar(&c.RestartPods, "restart-pods", 10000, "`NUMBER` of pods that exist at the restart")
	f.IntVar(&c.Services, "services", 1000, "`NUMBER` of services in phase flows, and in phase services: as many wait "+
		"for the master as are created while it runs")
	f.IntVar(&c.Adds, "adds", 50, "`NUMBER` of CNI ADDs of each kind")
	f.IntVar(&c.PolicyNamespaces, "policy-namespaces", 200, "`NUMBER` of namespaces in phase policies, with 10 pods and "+
		"2 policies each")
	f.StringVar(&only, "only", "", "`PHASES` to run, comma-separated: "+strings.Join(bench.Phases(), ","))
	f.StringVar(&c.APIServer, "apiserver", filepath.Join(bin, "sandbox-apiserver"), "`PATH` of the API server")
	f.StringVar(&c.OVNKube, "ovnkube", filepath.Join(bin, "ovnkube"), "`PATH` of the program to measure")
	f.StringVar(&c.Bin, "bin", bin, "`DIR` of the sandbox's programs and of ovn_cni, for phases with a real node")
	f.StringVar(&c.Hello, "hello", filepath.Join(bin, "hello"), "`PATH` of a hello-world program, for phase add")
	f.StringVar(&c.Schema, "nb-schema", "/usr/share/ovn/ovn-nb.ovsschema", "`PATH` of the Northbound schema")
	f.StringVar(&sizes, "sizes", "1000,10000,100000", "`NUMBERS` of pods in phase scale, comma-separated, ascending")
	f.IntVar(&c.Scale.Nodes, "scale-nodes", 1000, "`NUMBER` of fake nodes in phase scale")
	f.IntVar(&c.Scale.Services, "scale-services", 10000, "`NUMBER` of services in phase scale")
	f.StringVar(&c.Scale.Write, "write", "", "`DIR` in which phase scale writes scale.svg, and its table into "+
		"performance.md")
	f.StringVar(&nodes, "northd-nodes", "100,250,500", "`NUMBERS` of nodes in phase northd, comma-separated, ascending")
	f.StringVar(&ovn, "ovn", "tested,newest", "`VERSIONS` of OVN in phases northd and networks: tested, newest")
	f.IntVar(&c.Northd.Rounds, "northd-rounds", 5, "`NUMBER` of changes of each kind in phase northd")
	f.StringVar(&many, "networks", "100,300", "`NUMBERS` of networks in phase networks, comma-separated, ascending")
	f.IntVar(&c.Networks.Rounds, "networks-rounds", 5, "`NUMBER` of changes of each kind in phase networks")
	f.IntVar(&c.Networks.Churn, "networks-churn", 1000, "`NUMBER` of networks that come and go, 50 at once")
	f.StringVar(&c.Networks.Kinds, "networks-kinds", filepath.Join(bin, "..", load.NetworkKinds), "`PATH` of the "+
		"manifest that declares UserDefinedNetworks")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if c.Scale.Sizes, err = numbers("sizes", sizes); err != nil {
		return c, err
	}
	if c.Northd.Nodes, err = numbers("northd-nodes", nodes); err != nil {
		return c, err
	}
	if c.Networks.Sizes, err = numbers("networks", many); err != nil {
		return c, err
	}
	if c.choices, err = releases(ovn); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if only != "" {
		c.Only = strings.Split(only, ",")
	}
	if c.needsReleases() {
		return c, nil // the releases are still to be provided
	}
	return c, c.Validate()
}

// releases reads the value of --ovn.
func releases(text string) (out []rootfs.Choice, err error) {
	for _, v := range strings.Split(text, ",") {
		choice, known := map[string]rootfs.Choice{"tested": rootfs.Tested, "newest": rootfs.Newest}[v]
		if !known {
			return nil, fmt.Errorf("--ovn %s: want tested or newest, comma-separated", text)
		}
		out = append(out, choice)
	}
	return out, nil
}

// numbers reads the value of a flag.
func numbers(flag, text string) (out []int, err error) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("--%s %s: want numbers, comma-separated: %w", flag, text, err)
		}
		out = append(out, n)
	}
	return out, nil
}
