package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	kubesource "github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reconcile"
)

// exitChanges is plan's exit code when there is something to do.
const exitChanges = 2

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "print what the master would change in the Northbound database, and change nothing",
		Description: "Compares what the cluster wants, or what manifests given with -f want, with the Northbound database as it is.\n" +
			"One line per row, + added, ~ changed, - removed, and one per column. Nothing is written, to Kubernetes neither.\n" +
			"Nodes and pods that have no annotation yet are shown with the subnets and addresses that are free now.\n\n" +
			"Exit code 0: nothing to do. 2: there are changes. 1: an error, also when only part of the plan could be made.",
		Flags: slices.Concat([]cli.Flag{
			manifestFlag("`FILE`, directory or - for standard input, instead of the cluster; may be given again"),
		}, planFlags(), kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), []cli.Flag{configFlag()}, logFlags()),
		Action: runPlan,
	}
}

// planFlags are those that only a plan needs.
func planFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "how long a plan waits for the servers", EnvVars: env("timeout")},
	}
}

func runPlan(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	m, err := masterConfig(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	live := len(c.StringSlice("filename")) == 0
	read := func() ([]cluster.Object, error) { return manifests(c, c.App.ErrWriter) }
	if live {
		read = func() ([]cluster.Object, error) {
			objects, problems, err := liveObjects(ctx, m.Kubernetes, log)
			for _, p := range problems {
				warn(c.App.ErrWriter, p)
			}
			return objects, err
		}
	}
	objects, broken := read()
	if live && broken != nil {
		return broken
	}
	want, plans, err := plansFor(ctx, m, objects, log, c.App.ErrWriter)
	if err != nil && len(plans) == 0 {
		return errors.Join(broken, err) // "nothing to do" would be a claim
	}
	if printErr := printPlans(c.App.Writer, plans); printErr != nil {
		return printErr
	}
	errs := []error{broken, err}
	for _, p := range want.Problems {
		if live { // the master tells the object's owner, and works on
			warn(c.App.ErrWriter, p)
			continue
		}
		errs = append(errs, p)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(plans) > 0 {
		return cli.Exit("", exitChanges)
	}
	return nil
}

// warn tells of something that does not stop the work.
func warn(w io.Writer, what any) { fmt.Fprintln(w, "ovnkube: warning:", what) }

// liveObjects lists everything that the cluster is made of, and what is wrong
// with single objects.
func liveObjects(ctx context.Context, k config.Kubernetes, log *slog.Logger) ([]cluster.Object, []cluster.Problem, error) {
	clients, err := client.New(k, "northbound-plan")
	if err != nil {
		return nil, nil, err
	}
	if err := clients.WaitForServer(ctx, log); err != nil {
		return nil, nil, fmt.Errorf("waiting for the API server %s: %w", clients.Server, err)
	}
	watches, err := kubesource.New(clients, kinds.All())
	if err != nil {
		return nil, nil, err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Add(1)
	go func() {
		defer wg.Done()
		watches.Run(ctx)
	}()
	for !watches.Synced() {
		select {
		case <-watches.Signal():
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("listing the cluster from the API server %s: %w", clients.Server, ctx.Err())
		}
	}
	events, problems := watches.Take()
	var objects []cluster.Object
	for _, e := range events {
		if e.New != nil {
			objects = append(objects, e.New)
		}
	}
	return objects, problems, nil
}

// plansFor compares what objects want with the Northbound database. It warns of
// gateways that are taken to be out of service since they are so there.
func plansFor(ctx context.Context, m config.Master, objects []cluster.Object, log *slog.Logger, warnings io.Writer) (*offline.Cluster, []nb.Plan, error) {
	var plans []nb.Plan
	want, err := beside(ctx, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		for _, name := range reconcile.Recall(want.State, session) {
			warn(warnings, fmt.Sprintf("Node %s: the cluster router has no routes to its gateway: planned as one that is silent (docs/features/gateway.md); a master that hears of it adds them", name))
		}
		var err error
		plans, err = reconcile.Preview(want.State, want.Translators, want.Schema, session)
		return err
	})
	return want, plans, err
}

// beside has f look at what objects want, beside the Northbound database, which
// may tell of nodes besides.
func beside(ctx context.Context, m config.Master, objects []cluster.Object, log *slog.Logger, f func(*offline.Cluster, *ovsdb.Session) error) (*offline.Cluster, error) {
	want := offline.New(m.Cluster, objects)
	err := ovsdb.With(ctx, m.NB, want.Schema, log, func(session *ovsdb.Session) error {
		byHand, problems := reconcile.ByHand(session)
		if len(byHand) > 0 {
			want = offline.New(m.Cluster, cluster.WithByHand(objects, byHand))
		}
		want.Problems = append(want.Problems, problems...)
		if err := reconcile.Adopt(want.State, session); err != nil {
			return err
		}
		return f(want, session)
	})
	return want, err
}

// printPlans prints plans and a line that sums them up.
func printPlans(w io.Writer, plans []nb.Plan) error {
	b := bufio.NewWriter(w)
	var rows [3]int // by verb
	for _, p := range plans {
		if _, err := p.WriteTo(b); err != nil {
			return err
		}
		for verb, n := range tally(p) {
			rows[verb] += n
		}
	}
	if len(plans) == 0 {
		fmt.Fprintln(b, "Nothing to do: the Northbound database holds what is wanted.")
	} else {
		fmt.Fprintf(b, "\nPlan: %d to add, %d to change, %d to remove.\n", rows[nb.Insert], rows[nb.Update], rows[nb.Delete])
	}
	return b.Flush()
}

// tally counts a plan's rows by what happens to them. A row that only comes to
// be listed elsewhere is changed.
func tally(p nb.Plan) (rows [3]int) {
	touched := map[string]bool{}
	for _, r := range p.Rows {
		rows[r.Verb]++
		touched[r.UUID] = true
	}
	for _, m := range p.Members {
		if !touched[m.UUID] {
			rows[nb.Update]++
			touched[m.UUID] = true
		}
	}
	return rows
}
