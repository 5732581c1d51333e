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

// watcherCommand is the master by its classic name. It finds its settings where master-init stored them.
func watcherCommand() *cli.Command {
	d := config.DefaultMaster()
	return &cli.Command{
		Name:  "watcher",
		Usage: "run the master by its classic name, with the flags of Open vSwitch's daemons",
		Description: "Settings that flags, environment and settings file do not give come from external_ids of the\n" +
			"Open_vSwitch row (ovn-nb, k8s-api-server, k8s-ca-certificate, k8s-api-token). The cluster subnets\n" +
			"and join subnets come from the cluster router, where master-init stored them.",
		Flags: slices.Concat([]cli.Flag{
			boolFlag("overlay", "put pods into OVN's overlay network; required, since it is the only mode"),
			ovsFlag(),
			metricsFlag(d.Metrics),
			conntrackFlag(), insecureFlag(),
		}, daemonFlags(daemonNames()["watcher"]), kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(),
			[]cli.Flag{configFlag()}),
		Action: runWatcher,
	}
}

func runWatcher(c *cli.Context) error {
	if !c.Bool("overlay") {
		return usageError{errors.New("--overlay: is required, since it is the only mode")}
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

// recall reads the subnets that the cluster was created with from the Northbound database, unless the command line
// gives them. It waits for the database.
func recall(ctx context.Context, c *cli.Context, m *config.Master, log *slog.Logger) error {
	if c.IsSet("cluster-subnets") && c.IsSet("join-subnet") {
		return nil
	}
	err := ovsdb.With(ctx, m.NB, nb.NewSchema(), log, func(session *ovsdb.Session) error {
		return recallFrom(session, c, m)
	})
	if ctx.Err() != nil {
		return nil // stopped while it waited
	}
	return err
}

// recallFrom is recall with a connection to the database.
func recallFrom(session *ovsdb.Session, c *cli.Context, m *config.Master) error {
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
}
