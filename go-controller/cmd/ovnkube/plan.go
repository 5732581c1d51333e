package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	kubesource "github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// exitChanges is the exit code of a plan that has changes.
const exitChanges = 2

// planTimeout limits how long commands that only print wait for the servers.
const planTimeout = 30 * time.Second

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "print what the master would change in the Northbound database, and change nothing",
		Description: "Compares what the cluster, or the manifests given with -f, need with what the Northbound database\n" +
			"has. Prints a line per row (+ added, ~ changed, - removed) and a line per column. It writes\n" +
			"nothing, neither to the database nor to Kubernetes. Nodes and pods without an annotation are shown\n" +
			"with the subnets and addresses that are free now.\n\n" +
			"-f BUNDLE.tgz compares what `kubectl northbound bundle` has collected: the cluster's objects with its\n" +
			"Northbound database, as they were.\n\n" +
			"Exit code 0: nothing to do; 2: there are changes; 1: an error, even if part of the plan was\n" +
			"printed.",
		Flags: slices.Concat([]cli.Flag{printableFlag(asText, "")}, serversOrManifestsFlags(), clusterFlags(),
			topologyFlags(), []cli.Flag{configFlag()}, logFlags("info")),
		Action: runPlan,
	}
}

// serversOrManifestsFlags say where a command reads the cluster from, and with which database it compares it.
func serversOrManifestsFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		manifestFlag("manifest `FILE`, directory or - for standard input, instead of the cluster; repeatable"),
		timeoutFlag(planTimeout, "`DURATION` to wait for the servers"),
	}, kubernetesFlags(), northboundFlags())
}

func timeoutFlag(value time.Duration, usage string) cli.Flag {
	return durationFlag("timeout", value, usage)
}

// logAndMaster is the log of a command that does once what the master does, and the master's configuration.
func logAndMaster(c *cli.Context) (*slog.Logger, config.Master, error) {
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return nil, config.Master{}, err
	}
	m, err := runningMaster(c, log)
	warnTCP(c, "--nb-address", m.NB.Addresses)
	return log, m, err
}

func runPlan(c *cli.Context) error {
	write, badOutput := printer(c, asText)
	log, m, err := logAndMaster(c)
	if err := errors.Join(badOutput, err); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	live := len(c.StringSlice("filename")) == 0
	if captured := bundleOf(c); captured != "" && !c.IsSet("nb-address") && !c.IsSet("nb-service") {
		stop, err := serveBundle(ctx, captured, &m)
		if err != nil {
			return err
		}
		defer stop()
	}
	var objects []cluster.Object
	var broken error // of the manifests
	if live {
		var problems []cluster.Problem
		if objects, problems, err = liveObjects(ctx, m.Kubernetes, m.Cluster.Policies, log); err != nil {
			return err
		}
		for _, p := range problems {
			warn(c.App.ErrWriter, p)
		}
	} else {
		objects, broken = manifests(c)
	}
	want, plans, err := plansFor(ctx, c, m, objects, log, c.App.ErrWriter)
	if err != nil && len(plans) == 0 {
		return errors.Join(broken, err) // without a plan, "nothing to do" may be wrong
	}
	if printErr := write(planned{plans, nb.NewChanges(plans)}); printErr != nil {
		return printErr
	}
	errs := []error{broken, err}
	for _, p := range want.Problems {
		if live { // the master reports the object's problem as an Event and goes on
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

// warn prints a problem that does not stop the command.
func warn(w io.Writer, what any) { fmt.Fprintln(w, "ovnkube: warning:", what) }

// liveObjects lists the cluster's objects, and the problems of single objects, from the API server.
func liveObjects(
	ctx context.Context, k config.Kubernetes, limits config.Policies, log *slog.Logger,
) ([]cluster.Object, []cluster.Problem, error) {
	clients, err := client.New(k, "northbound-plan")
	if err != nil {
		return nil, nil, err
	}
	if err := clients.ReachServer(ctx, log); err != nil {
		return nil, nil, fmt.Errorf("waiting for the API server %s: %w", clients.Server, err)
	}
	var objects []cluster.Object
	var problems []cluster.Problem
	for _, k := range kinds.WatchedBy(kinds.Within(limits), kinds.Master) {
		listed, wrong, err := kubesource.List[cluster.Object](ctx, clients, k)
		if err != nil {
			return nil, nil, err
		}
		objects, problems = append(objects, listed...), append(problems, wrong...)
	}
	return objects, problems, nil
}

// plansFor compares the rows that the objects need with the Northbound database. A gateway that has no routes in
// the database counts as out of service, with a warning: only a running master can know better.
func plansFor(
	ctx context.Context, c *cli.Context, m config.Master, objects []cluster.Object, log *slog.Logger, warnings io.Writer,
) (*offline.Cluster, []nb.Plan, error) {
	var plans []nb.Plan
	want, err := beside(ctx, c, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		recorded, err := session.Epoch()
		if err != nil {
			return err
		}
		if other := recorded.Of(want.State.UID()); other != nil {
			warn(warnings, fmt.Sprintf("%v; without that flag a master ends here", other))
		}
		for _, name := range nbrecord.DownGateways(want.State, session.View()) {
			down := &cluster.GatewayDown{Node: name}
			want.Step([]cluster.Event{{Ref: down.Ref(), New: down}})
			warn(warnings, fmt.Sprintf("Node %s: the cluster router has no routes to its gateway: planned as a gateway "+
				"that is down (docs/features/gateway.md); a master adds them once it sees the gateway's Lease renewed", name))
		}
		if r := want.Removal(session.View(), session.Owners()); r.Large() {
			warn(warnings, fmt.Sprintf("%d of %d rows are to be removed: after its start the master waits for "+
				"ovnkube approve --digest %s", r.Rows, r.Of, r.Digest()))
		}
		batch := want.Plan(session.View(), append(want.Owners(), session.Owners()...), nil)
		plans = batch.Plans
		return batch.Err()
	})
	return want, plans, err
}

// beside calls f with the cluster that the objects make and a session with the Northbound database. Nodes that
// were set up by hand are added to the cluster from the database.
func beside(
	ctx context.Context, c *cli.Context, m config.Master, objects []cluster.Object, log *slog.Logger,
	f func(*offline.Cluster, *ovsdb.Session) error,
) (*offline.Cluster, error) {
	var want *offline.Cluster
	err := ovsdb.With(ctx, m.NB, nb.NewSchema(), log, func(session *ovsdb.Session) error {
		if err := recallFrom(session, c, &m); err != nil {
			return err
		}
		byHand, problems := nbrecord.Nodes(session)
		for _, n := range byHand {
			objects = append(objects, &cluster.NodeRecord{Node: n})
		}
		objects = append(objects, nbrecord.DomainNameObjects(session.View(), objects)...)
		want = offline.New(m.Cluster, objects)
		want.Problems = append(want.Problems, problems...)
		if err := nbrecord.Router(want.State, session); err != nil {
			return err
		}
		return f(want, session)
	})
	return want, err
}

// planned is what `ovnkube plan` prints.
type planned struct {
	plans   []nb.Plan
	changes *nb.Changes
}

// WriteText prints plans and a summary.
func (p planned) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, one := range p.plans {
		if _, err := one.WriteTo(b); err != nil {
			return err
		}
	}
	if c := p.changes; len(p.plans) == 0 {
		fmt.Fprintln(b, "Nothing to do: the Northbound database holds what is wanted.")
	} else {
		fmt.Fprintf(b, "\nPlan: %d to add, %d to change, %d to remove.\n", c.Added, c.Changed, c.Removed)
	}
	return b.Flush()
}

// WriteJSON prints the changes as one JSON object.
func (p planned) WriteJSON(w io.Writer) error { return p.changes.WriteJSON(w) }
