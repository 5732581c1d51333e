package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
)

func ovnFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "ovn", Value: sandbox.OVNRootfs, EnvVars: []string{sandbox.OVNVariable},
		Usage: "where OVN and containerd come `FROM`: rootfs (Debian 13, cached), " +
			"newest (Debian unstable and experimental, cached), host",
	}
}

func installFlag() cli.Flag {
	return &cli.StringFlag{Name: "install", EnvVars: []string{sandbox.InstallVariable},
		Usage: "`HOW` Northbound is installed: chart for pods of the Helm chart, manifest for the same with kubectl " +
			"(default: as processes)"}
}

func upFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "nodes", Value: sandbox.DefaultNodes, Usage: "`COUNT` of nodes"},
		&cli.BoolFlag{Name: "no-nodes", Usage: "only the API server, the OVN databases and northd: no master, no nodes"},
		&cli.IntFlag{Name: "gateways",
			Usage: "`COUNT` of nodes that are gateways, the first ones; there is a host outside, too"},
		&cli.BoolFlag{Name: "ha",
			Usage: "three control machines: databases as clusters, two each of ovn-northd and master"},
		&cli.BoolFlag{Name: "dual-stack", Usage: "IPv4 and IPv6: nodes, pods and services"},
		ovnFlag(),
		installFlag(),
		&cli.BoolFlag{Name: "openvswitch-in-pods",
			Usage: "with --install chart: nodes without Open vSwitch, and with a second NIC for tunnels"},
		&cli.BoolFlag{Name: "audit",
			Usage: "the API server records what ovnkube asks of it, in control/api/audit.log of the state"},
		&cli.BoolFlag{Name: "replace", Usage: "take down a sandbox of that name first"},
		&cli.BoolFlag{Name: "keep", Usage: "leave what is there when it fails, to look at"},
	}
}

func upOptions(c *cli.Context) sandbox.Options {
	return sandbox.Options{
		Name: c.String("name"), StateRoot: c.String("dir"), Nodes: c.Int("nodes"), NoNodes: c.Bool("no-nodes"),
		HA: c.Bool("ha"), Gateways: c.Int("gateways"), DualStack: c.Bool("dual-stack"), OVN: c.String("ovn"),
		Install: c.String("install"), SwitchPods: c.Bool("openvswitch-in-pods"), Replace: c.Bool("replace"),
		Audit: c.Bool("audit"), Keep: c.Bool("keep"), Progress: os.Stderr,
	}
}

func upCommand() *cli.Command {
	return &cli.Command{
		Name: "up", Usage: "make the sandbox", Flags: upFlags(), Before: noArgs,
		Action: func(c *cli.Context) error {
			if c.IsSet("nodes") && (c.Int("nodes") < 1 || c.Bool("no-nodes")) {
				return fmt.Errorf("--nodes %d: want at least 1; --no-nodes, alone, is for a sandbox without nodes", c.Int("nodes"))
			}
			cluster, err := sandbox.Up(c.Context, upOptions(c))
			if err != nil {
				return err
			}
			if cluster.RunsChart() {
				fmt.Fprintf(c.App.Writer, "OVN's databases are in pods of namespace %s\n", sandbox.Namespace)
			} else {
				fmt.Fprintf(c.App.Writer, "Northbound database: unix:%s\n", cluster.Control.Host("/run/ovn/ovnnb_db.sock"))
			}
			fmt.Fprintf(c.App.Writer,
				"Kubernetes: `sandbox --name %s kubectl get nodes`; from a program, %s within the sandbox's network\n",
				cluster.Options.Name, cluster.Control.AdminKubeconfig())
			return nil
		},
	}
}

func fetchCommand() *cli.Command {
	return &cli.Command{
		Name: "fetch", Usage: "fetch what sandboxes take OVN and containerd from, unless it is there; up does so, too",
		Flags: []cli.Flag{ovnFlag()}, Before: noArgs,
		Action: func(c *cli.Context) error {
			system, err := sandbox.Provide(c.Context, sandbox.Options{OVN: c.String("ovn"), Progress: os.Stderr})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.App.Writer, "OVN %s, Open vSwitch %s\n", system.OVN, system.OpenVSwitch)
			return nil
		},
	}
}

func downCommand() *cli.Command {
	return &cli.Command{
		Name: "down", Usage: "remove every trace of the sandbox", Before: noArgs,
		Action: func(c *cli.Context) error { return sandbox.Down(c.Context, c.String("dir"), c.String("name")) },
	}
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "tell what runs; exits with 1 when something doesn't", Before: noArgs,
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			all := cluster.Status(c.Context)
			for _, s := range all {
				fmt.Fprintln(c.App.Writer, s)
			}
			if !sandbox.Healthy(all) {
				return fmt.Errorf("sandbox %s isn't healthy", cluster.Options.Name)
			}
			return nil
		},
	}
}

// initCommand is PID 1 of a machine; the sandbox runs it itself.
func initCommand() *cli.Command {
	return &cli.Command{
		Name: "init", Hidden: true,
		Action: func(c *cli.Context) error { return member.Init(c.Args().First()) },
	}
}
