package main

import (
	"context"
	"errors"
	"slices"

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
			"manifests given with -f. With --from, compares the manifests given with -f with those, both as\n" +
			"whole clusters, and asks no server. It also warns of what is probably not meant in policies that\n" +
			"are new or changed.\n\n" +
			"Exit code 0: no connection is gained or lost; 2: some are; 1: an error.",
		Flags: slices.Concat([]cli.Flag{outputFlag("table", "table or json"),
			manifestFlag("manifest `FILE`, directory or - for standard input, with what is new; repeatable"),
			&cli.StringSliceFlag{Name: "from", Usage: "manifest `FILE` or directory with what is old, instead of the cluster; " +
				"repeatable"}, namespaceFlag(), timeoutFlag(planTimeout, "`DURATION` to wait for the API server")},
			kubernetesFlags(), clusterFlags(), topologyFlags(), logFlags("info")),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action:       runPolicyDiff,
	}
}

func runPolicyDiff(c *cli.Context) error {
	write, err := tableOrJSON(c)
	if err != nil {
		return err
	}
	if len(c.StringSlice("filename")) == 0 {
		return usageError{errors.New("policy diff: -f is missing: want a file, a directory, or - for standard input")}
	}
	cfg, err := clusterConfig(c)
	if err := errors.Join(err, cfg.Validate()); err != nil {
		return err
	}
	given, broken := manifests(c)
	old, now, wrong, err := oldAndNew(c, given)
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
func oldAndNew(c *cli.Context, given []cluster.Object) (old, now []cluster.Object, wrong, err error) {
	if from := c.StringSlice("from"); len(from) > 0 {
		old, wrong = manifestsIn(c, from)
		return old, given, wrong, nil
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	old, problems, err := liveObjects(ctx, kubernetesConfig(c), log)
	for _, p := range problems {
		warn(c.App.ErrWriter, p)
	}
	return old, applied(old, given), nil, err
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
