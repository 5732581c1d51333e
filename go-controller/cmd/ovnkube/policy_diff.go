package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
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
			"Exit code 0: no connection is gained or lost; 2: some are; 1: an error.",
		Flags: slices.Concat([]cli.Flag{printableFlag(asTable, ""),
			manifestFlag("manifest `FILE`, directory or - for standard input, with what is new; repeatable"), hostsFlag(),
			&cli.StringSliceFlag{Name: "from", Usage: "manifest `FILE` or directory with what is old, instead of the cluster; " +
				"repeatable"},
			&cli.StringSliceFlag{Name: "delete", Usage: "`POLICY` of the cluster that is to go, such as np/shop/web or " +
				"cnp/guard; repeatable"}, namespaceFlag(), timeoutFlag(planTimeout, "`DURATION` to wait for the API server")},
			kubernetesFlags(), clusterFlags(), topologyFlags(), logFlags("info")),
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
	cfg, err := clusterConfig(c)
	if err := errors.Join(err, cfg.Validate()); err != nil {
		return err
	}
	given, broken := manifests(c)
	old, now, wrong, err := oldAndNew(c, given, gone)
	if err != nil {
		return errors.Join(broken, err)
	}
	diff, err := diffOf(c, cfg, old, now)
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

// oldAndNew is the objects that are compared. wrong describes broken manifests of the old ones.
func oldAndNew(
	c *cli.Context, given []cluster.Object, gone []cluster.Ref,
) (old, now []cluster.Object, wrong, err error) {
	if from := c.StringSlice("from"); len(from) > 0 {
		named, _ := hosts(c) // manifests has reported its error
		old, wrong = manifestsIn(c, from)
		return append(old, named...), given, wrong, nil
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	named, _ := hosts(c)
	old, problems, err := liveObjects(ctx, kubernetesConfig(c), log)
	old = append(old, named...)
	for _, p := range problems {
		warn(c.App.ErrWriter, p)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	now, err = without(applied(old, given), gone)
	return old, now, nil, err
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
		return slices.ContainsFunc(manifests, func(m cluster.Object) bool { return m.Ref() == o.Ref() })
	})
	return append(out, manifests...)
}

// diffOf compares what two lists of objects make. What is wrong with the new ones is a warning.
func diffOf(c *cli.Context, cfg config.Cluster, old, now []cluster.Object) (*reach.Diff, error) {
	was := offline.New(cfg, old)
	before, errs := was.Database()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	after, err := wanted(c, offline.New(cfg, now))
	if err != nil {
		return nil, err
	}
	return after.DiffFrom(reach.New(was.Core, before), c.StringSlice("namespace"))
}
