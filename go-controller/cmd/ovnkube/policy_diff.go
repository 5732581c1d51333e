package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

func policyDiffCommand() *cli.Command {
	return &cli.Command{
		Name:  "diff",
		Usage: "print which connections a change of policies would gain and lose",
		Description: "Without --from, compares the cluster with what it would be after `kubectl apply -f` of the\n" +
			"manifests given with -f, and `kubectl delete` of the policies given with --delete. With --from,\n" +
			"compares the manifests given with -f with those, both as whole clusters, and asks no server. It also\n" +
			"warns of what is probably not meant in policies that are new or changed.\n\n" +
			"The master's settings come from the ConfigMap northbound-settings: that of the cluster, or with --from\n" +
			"the one among those manifests. Flags count more.\n\n" +
			"With --nb-address or --nb-service, it says whether the Northbound database has the rows of the policies\n" +
			"as they are now, and takes the cluster's subnets and the addresses of names from there.\n\n" +
			"Exit code 0: no connection is gained or lost; 2: some are; 1: an error.",
		Flags: slices.Concat([]cli.Flag{printableFlag(asTable, ""),
			manifestFlag("manifest `FILE`, directory or - for standard input, with what is new; repeatable"), hostsFlag(),
			&cli.StringSliceFlag{Name: "from", Usage: "manifest `FILE` or directory with what is old, instead of the cluster; " +
				"repeatable"},
			&cli.StringSliceFlag{Name: "delete", Usage: "`POLICY` of the cluster that is to go, such as np/shop/web or " +
				"cnp/guard; repeatable"}, namespaceFlag(), timeoutFlag(planTimeout, "`DURATION` to wait for the API server")},
			kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), logFlags("info")),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action:       runPolicyDiff,
	}
}

func runPolicyDiff(c *cli.Context) error {
	write, err := printer(c, asTable)
	if err != nil {
		return err
	}
	gone, err := deletedPolicies(c)
	switch {
	case err != nil:
		return usageError{fmt.Errorf("policy diff: %w", err)}
	case len(c.StringSlice("filename"))+len(gone) == 0:
		return usageError{errors.New("policy diff: -f is missing: want a file, a directory, or - for standard input")}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	cfg, err := comparedConfig(c, log)
	if err := errors.Join(err, cfg.Validate()); err != nil {
		return err
	}
	if err := errors.Join(unusable(c, c.StringSlice("filename")), unusable(c, c.StringSlice("from"))); err != nil {
		return err
	}
	given, broken := manifests(c)
	of, wrong, err := oldAndNew(c, cfg, given, gone, log)
	if err != nil {
		return errors.Join(broken, err)
	}
	diff, err := of.diff(c)
	if err != nil {
		return errors.Join(broken, wrong, err)
	}
	if err := errors.Join(write(diff), broken, wrong); err != nil {
		return err
	}
	if diff.Any() {
		return cli.Exit("", exitDenied)
	}
	return nil
}

// comparedConfig is the settings for both sides. What flags do not give comes from the running master, or with --from
// from the settings among those manifests.
func comparedConfig(c *cli.Context, log *slog.Logger) (config.Cluster, error) {
	var err error
	if from := c.StringSlice("from"); len(from) > 0 {
		err = adoptManifests(c, from)
	} else {
		err = adoptPublished(c, log)
	}
	if err != nil {
		return config.Cluster{}, err
	}
	return clusterConfig(c)
}

// compared is the objects that are compared.
type compared struct {
	cfg      config.Cluster
	old, now []cluster.Object
	rows     *reach.Rows // how the rows of the old policies are in the Northbound database; nil when it is not asked
}

// oldAndNew is the objects that are compared. wrong describes broken manifests of the old ones.
func oldAndNew(
	c *cli.Context, cfg config.Cluster, given []cluster.Object, gone []cluster.Ref, log *slog.Logger,
) (of *compared, wrong, err error) {
	named, _ := hosts(c) // manifests has reported its error
	if from := c.StringSlice("from"); len(from) > 0 {
		old, wrong := manifestsIn(c, from)
		return &compared{cfg: cfg, old: append(old, named...), now: given}, wrong, nil
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	old, problems, err := liveObjects(ctx, kubernetesConfig(c), cfg.Policies, log)
	for _, p := range problems {
		warn(c.App.ErrWriter, p)
	}
	if err != nil {
		return nil, nil, err
	}
	old = append(old, named...)
	now, err := without(applied(old, given), gone)
	if err != nil {
		return nil, nil, err
	}
	of = &compared{cfg: cfg, old: old, now: now}
	if c.IsSet("nb-address") || c.String("nb-service") != "" {
		err = of.ask(ctx, c, log)
	}
	return of, nil, err
}

// ask asks the Northbound database. What only that knows is the same before and after: nodes set up by hand, and the
// addresses of names.
func (d *compared) ask(ctx context.Context, c *cli.Context, log *slog.Logger) error {
	if _, err := findServers(c, "nb", false, log); err != nil {
		return err
	}
	m := config.DefaultMaster()
	m.Kubernetes, m.NB, m.Cluster = kubernetesConfig(c), northboundConfig(c), d.cfg
	if err := m.Validate(); err != nil {
		return err
	}
	_, err := beside(ctx, c, m, d.old, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		batch := want.Plan(session.View(), append(want.Owners(), session.Owners()...), nil)
		if err := batch.Err(); err != nil {
			return err
		}
		d.cfg, d.rows = want.State.Config, reach.RowsOf(batch.Plans)
		d.rows.WithoutTiers = want.State.WithoutTiers && len(want.State.ClusterNetworkPolicies) > 0
		byHand, _ := nbrecord.Nodes(session)
		for _, n := range byHand {
			record := &cluster.NodeRecord{Node: n}
			d.old, d.now = append(d.old, record), append(d.now, record)
		}
		names := nbrecord.DomainNameObjects(session.View(), slices.Concat(d.old, d.now))
		d.old, d.now = applied(names, d.old), applied(names, d.now)
		return nil
	})
	return err
}

// deletedPolicies reads --delete.
func deletedPolicies(c *cli.Context) ([]cluster.Ref, error) {
	var out []cluster.Ref
	for _, text := range c.StringSlice("delete") {
		kind, name, _ := strings.Cut(text, "/")
		n := cluster.ParseName(name)
		switch {
		case isKind("networkpolicy", kind) && n.Namespace != "" && n.Name != "":
			out = append(out, cluster.Ref{Kind: cluster.KindNetworkPolicy, Name: n})
		case isKind("clusternetworkpolicy", kind) && n.Namespace == "" && n.Name != "":
			out = append(out, cluster.Ref{Kind: cluster.KindClusterNetworkPolicy, Name: n})
		default:
			return nil, fmt.Errorf("--delete %q: want np/NAMESPACE/NAME or cnp/NAME", text)
		}
	}
	if len(out) > 0 && len(c.StringSlice("from")) > 0 {
		return nil, errors.New("--delete is about the cluster: beside --from, leave the policy out of -f")
	}
	return out, nil
}

// without is objects but for those that go. Each of these must be there.
func without(objects []cluster.Object, gone []cluster.Ref) ([]cluster.Object, error) {
	for _, r := range gone {
		i := slices.IndexFunc(objects, func(o cluster.Object) bool { return o.Ref() == r })
		if i < 0 {
			return nil, fmt.Errorf("--delete: there is no %s", r)
		}
		objects = slices.Delete(objects, i, i+1)
	}
	return objects, nil
}

// applied is objects after those of manifests were added, or put in the place of those of their names.
func applied(objects, manifests []cluster.Object) []cluster.Object {
	out := slices.DeleteFunc(slices.Clone(objects), func(o cluster.Object) bool {
		at := slices.IndexFunc(manifests, func(m cluster.Object) bool { return m.Ref() == o.Ref() })
		if at < 0 {
			return false
		}
		if m, ok := manifests[at].(interface{ Replace(cluster.Object) }); ok {
			m.Replace(o)
		}
		return true
	})
	return append(out, manifests...)
}

// diff compares what the objects make. What is wrong with the new ones is a warning.
func (d *compared) diff(c *cli.Context) (*reach.Diff, error) {
	was := offline.New(d.cfg, d.old)
	before, errs := was.Database()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	after, err := wanted(c, offline.New(d.cfg, d.now))
	if err != nil {
		return nil, err
	}
	out, err := after.DiffFrom(reach.New(was.Core, before), c.StringSlice("namespace"))
	if err == nil && d.rows != nil {
		out.Notes = append(out.Notes, d.rows.Notes()...)
	}
	return out, err
}
