package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cleanup"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	kubecleanup "github.com/northbound-net/northbound/go-controller/internal/kube/cleanup"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// cleanupCommand is `ovnkube cleanup`, for those who remove the product.
func cleanupCommand() *cli.Command {
	return commandGroup("cleanup", "take back what Northbound has set up on a node, or in the cluster's objects",
		[]*cli.Command{cleanupNodeCommand(), cleanupClusterCommand()})
}

// cleanupNodeCommand is `ovnkube cleanup node`.
func cleanupNodeCommand() *cli.Command {
	d := config.DefaultNode()
	return &cli.Command{
		Name:  "node",
		Usage: "remove br-int, routes, nftables rules, the CNI configuration and plugin from this machine",
		Description: "Also removes OVN's keys of Open vSwitch and certificates, and restores sysctls and the\n" +
			"system-id. It needs root and a running Open vSwitch. The agent and ovn-controller must not run, and no pod\n" +
			"may be left. External bridges stay: `ovnkube bridges-to-nic` removes one.\n\nExit code 1: an error. It goes on " +
			"after a change that failed, and can be repeated.",
		Flags: slices.Concat([]cli.Flag{
			dryRunFlag(),
			boolFlag("cut-off-pods", "go on although pods with the node's network still run: they lose it"),
			ovsFlag(),
			&cli.StringFlag{Name: "ovn-rundir", Value: d.OVNRunDir, Usage: "`DIR` of ovn-controller's control socket",
				EnvVars: append(env("ovn-rundir"), "OVN_RUNDIR")},
			stringFlag("cni-conf-dir", d.CNIConfDir, "`DIR` of the CNI configuration"),
			stringFlag("cni-bin-dir", d.CNIBinDir, "`DIR` of the runtime's CNI plugins"),
			stringFlag("cni-socket-dir", d.CNISocketDir, "`DIR` of the agent's socket"),
			stringFlag("state-dir", "/var/lib/northbound", "`DIR` with the directory certificates"),
			stringFlag("databases-dir", "", "`DIR` with the files of the chart's databases, to remove these, too"),
			stringFlag("tunnel-interface", "", "`NIC` that the chart has moved into a bridge for the tunnels"),
			stringFlag("openvswitch-dir", "/etc/openvswitch", "`DIR` of Open vSwitch's file system-id.conf"),
			timeoutFlag(10*time.Second, "`DURATION` to wait for Open vSwitch"),
		}, []cli.Flag{configFlag()}, logFlags("warn")),
		OnUsageError: onUsageError,
		Before:       withSettings(noArguments),
		Action:       runCleanupNode,
	}
}

func runCleanupNode(c *cli.Context) error {
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("cleanup node changes this machine's network: run it as root")
	}
	bridge := ""
	if nic := c.String("tunnel-interface"); nic != "" {
		bridge = names.UplinkBridge(nic)
	}
	return cleanup.Node{
		Bridge: bridge, Return: func(ctx context.Context, bridge string) error { return returnNIC(ctx, c, bridge) },
		OVSAddress: c.String("ovs-address"), OVNRunDir: c.String("ovn-rundir"), CNIConfDir: c.String("cni-conf-dir"),
		CNIBinDir: c.String("cni-bin-dir"), CNISocketDir: c.String("cni-socket-dir"), StateDir: c.String("state-dir"),
		OpenvSwitchDir: c.String("openvswitch-dir"), DatabaseDir: c.String("databases-dir"),
		CutOffPods: c.Bool("cut-off-pods"), DryRun: c.Bool("dry-run"),
		Timeout: c.Duration("timeout"), Out: c.App.Writer, Log: log,
	}.Run(c.Context)
}

// returnNIC moves a NIC out of its bridge.
func returnNIC(ctx context.Context, c *cli.Context, bridge string) error {
	m, done, err := moverOf(c, filepath.Join(c.String("state-dir"), "nics"))
	if err != nil {
		return err
	}
	defer done()
	return m.Return(ctx, []string{bridge}, false)
}

// cleanupClusterCommand is `ovnkube cleanup cluster`.
func cleanupClusterCommand() *cli.Command {
	d := config.DefaultMaster().LeaderElect
	return &cli.Command{
		Name:  "cluster",
		Usage: "remove Northbound's annotations, Leases, settings and authorities from the API server",
		Description: "Run it when no master and no agent runs any more. It removes annotations of Nodes and Pods, Leases,\n" +
			"certificate requests, the ConfigMap northbound-settings, and the authorities' Secrets and ConfigMaps. What the\n" +
			"chart or manifests made is removed as it was made.\n\nExit code 1: an error. It goes on after a change that " +
			"failed, and can be repeated.",
		Flags: slices.Concat([]cli.Flag{
			dryRunFlag(), authorityNamespaceFlag(),
			stringFlag("leader-elect-namespace", d.Namespace, "`NAMESPACE` of the masters' Lease"),
			timeoutFlag(10*time.Minute, "`DURATION` to wait for the API server"),
		}, kubernetesFlags(), []cli.Flag{configFlag()}, logFlags("warn")),
		OnUsageError: onUsageError,
		Before:       withSettings(noArguments),
		Action:       runCleanupCluster,
	}
}

func runCleanupCluster(c *cli.Context) error {
	clients, err := client.New(kubernetesConfig(c), "ovnkube-cleanup")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	election := config.DefaultMaster().LeaderElect
	election.Namespace = c.String("leader-elect-namespace")
	return kubecleanup.Cluster{Clients: clients, Election: election, Namespace: c.String("namespace"),
		DryRun: c.Bool("dry-run"), Out: c.App.Writer}.Run(ctx)
}
