// Command policyshape measures two ways to write network policies in OVN: with a port group for the subject of each
// policy, or with an address set on one group of all pods. It prints a table. It needs root, and takes some minutes for
// each load. docs/adr/0033-policies-as-groups-and-sets.md has results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/netns"
	"github.com/northbound-net/northbound/test/scale/policyshape"
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

// config is the command line.
type config struct {
	policyshape.Config
	choices []rootfs.Choice
	results string
}

func run(ctx context.Context, args []string, out, w io.Writer) int {
	c, err := parse(args, w)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(w, "policyshape:", err)
		return usage
	}
	// Downloads happen outside: the network namespace has no connection to the internet.
	systems, err := provide(ctx, c.choices, w)
	if err != nil {
		fmt.Fprintln(w, "policyshape:", err)
		return failed
	}
	inside, code, err := netns.Enter()
	if err == nil && !inside {
		return code
	}
	if err == nil {
		err = measure(ctx, c, systems, out, w)
	}
	if err != nil {
		fmt.Fprintln(w, "policyshape:", err)
		return failed
	}
	return 0
}

// provide returns the root filesystems, and makes them first if need be.
func provide(ctx context.Context, choices []rootfs.Choice, w io.Writer) (systems []central.Release, err error) {
	for _, choice := range choices {
		var s central.Release
		if s.Root, err = rootfs.Ensure(ctx, rootfs.DefaultCache, choice, progress.New(w)); err != nil {
			return nil, err
		}
		if s.Version, err = rootfs.Version(ctx, s.Root, "ovn-common"); err != nil {
			return nil, err
		}
		systems = append(systems, s)
	}
	return systems, nil
}

func measure(ctx context.Context, c config, systems []central.Release, out, w io.Writer) error {
	for _, s := range systems {
		err := policyshape.Run(ctx, s, c.Config, w, func(r policyshape.Result) error {
			return policyshape.Append(c.results, r)
		})
		if err != nil {
			return fmt.Errorf("measuring OVN %s: %w", s.Version, err)
		}
	}
	results, err := policyshape.Read(c.results)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, policyshape.Table(results))
	return err
}

func parse(args []string, w io.Writer) (c config, err error) {
	var ovn, sizes, shapes string
	var size policyshape.Size
	f := flag.NewFlagSet("policyshape", flag.ContinueOnError)
	f.SetOutput(w)
	f.StringVar(&ovn, "ovn", "tested,newest", "`VERSIONS` to measure: tested, newest, or \"\" to show earlier results")
	f.StringVar(&sizes, "policies", "1000,5000,10000", "`NUMBERS` of policies")
	f.StringVar(&shapes, "shapes", "groups,sets", "`SHAPES` to measure: groups, sets, addresses")
	f.IntVar(&size.Switches, "switches", 100, "`NUMBER` of switches, each with a chassis")
	f.IntVar(&size.Pods, "pods", 50, "`NUMBER` of pods on each switch")
	f.IntVar(&c.Rounds, "rounds", 5, "`NUMBER` of times that each event is measured")
	f.DurationVar(&c.Limit, "limit", 15*time.Minute, "`TIME` for each load; what was measured by then counts")
	f.StringVar(&c.results, "results", "policyshape.jsonl", "`FILE` to which results are added, and that the table is of")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	for _, n := range strings.Split(sizes, ",") {
		if size.Policies, err = strconv.Atoi(n); err != nil {
			return c, fmt.Errorf("--policies %s: want numbers, comma-separated: %w", sizes, err)
		}
		c.Sizes = append(c.Sizes, size)
	}
	for _, s := range strings.Split(shapes, ",") {
		c.Shapes = append(c.Shapes, policyshape.Shape(s))
	}
	for _, v := range strings.FieldsFunc(ovn, func(r rune) bool { return r == ',' }) {
		switch v {
		case "tested":
			c.choices = append(c.choices, rootfs.Tested)
		case "newest":
			c.choices = append(c.choices, rootfs.Newest)
		default:
			return c, fmt.Errorf("--ovn %s: want tested or newest, comma-separated", ovn)
		}
	}
	return c, c.Validate()
}
