package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/master"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// watcherCommand is the master by its classic name, which finds what it needs
// to know where master-init left it.
func watcherCommand() *cli.Command {
	d := config.DefaultMaster()
	return &cli.Command{
		Name:  "watcher",
		Usage: "the master by its classic name, as a daemon in Open vSwitch's way",
		Description: "What flags, environment and settings file don't say is read from the Open_vSwitch row (external_ids:ovn-nb,\n" +
			"k8s-api-server, k8s-ca-certificate, k8s-api-token), and the cluster's ranges from where master-init left them.",
		Flags: slices.Concat([]cli.Flag{
			boolFlag("overlay", "pods are in networks of OVN's own: the only mode there is"),
			ovsFlag(),
			stringFlag("metrics-bind-address", d.Metrics, "`HOST:PORT` of /metrics, /healthz and /readyz"),
		}, daemonFlags(daemonNames()["watcher"]), kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), []cli.Flag{configFlag()}),
		Action: runWatcher,
	}
}

func runWatcher(c *cli.Context) error {
	if !c.Bool("overlay") {
		return usageError{errors.New("--overlay: is needed; it is the only mode there is")}
	}
	m, err := masterConfig(c)
	if err != nil {
		return err
	}
	return runDaemon(c, func(ctx context.Context, log *slog.Logger, ready func()) error {
		return master.Run(ctx, m, log, func(ctx context.Context, m *config.Master) error {
			ready()
			return recall(ctx, c, m, log)
		})
	})
}

// recall takes the ranges that the cluster was made with, unless the command
// line has others; it waits for the database that knows them.
func recall(ctx context.Context, c *cli.Context, m *config.Master, log *slog.Logger) error {
	if c.IsSet("cluster-subnets") && c.IsSet("join-subnet") {
		return nil
	}
	err := ovsdb.With(ctx, m.NB, nb.NewSchema(), log, func(session *ovsdb.Session) error {
		subnets, join := session.ClusterRecord()
		var err error
		if subnets != "" && !c.IsSet("cluster-subnets") {
			if m.Cluster.Subnets, err = config.ParseClusterSubnets(subnets); err != nil {
				return fmt.Errorf("reading %s of the cluster router: %w", names.SubnetsKey, err)
			}
		}
		if join != "" && !c.IsSet("join-subnet") {
			if m.Cluster.JoinSubnets, err = config.ParsePrefixes(names.JoinKey+" of the cluster router", join); err != nil {
				return err
			}
		}
		return m.Validate()
	})
	if ctx.Err() != nil {
		return nil // told to stop while waiting
	}
	return err
}
