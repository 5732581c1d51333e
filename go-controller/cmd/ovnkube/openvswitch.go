package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/ovspod"
)

// openvswitchCommand is `ovnkube openvswitch`, for the pods that run Open vSwitch.
func openvswitchCommand() *cli.Command {
	return commandGroup("openvswitch", "run Open vSwitch in a pod of the node, as the Helm chart does",
		[]*cli.Command{openvswitchDatabaseCommand(), openvswitchSwitchCommand()})
}

func openvswitchDatabaseCommand() *cli.Command {
	return &cli.Command{
		Name:  "database",
		Usage: "run ovsdb-server with the Open_vSwitch database",
		Description: "Makes the database's file if it is missing, and upgrades its schema. Fails while the machine's own\n" +
			"Open vSwitch runs. When it ends, it removes a database that it had made and that has no bridge any more.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("database", "/etc/openvswitch/conf.db", "`FILE` of the database"),
			stringFlag("schema", "/usr/share/openvswitch/vswitch.ovsschema", "`FILE` of the database's schema"),
		}, openvswitchFlags(), logFlags("info")),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action: func(c *cli.Context) error {
			log, err := newLog(c, c.App.ErrWriter)
			if err != nil {
				return err
			}
			l := ovspod.Layout{Sockets: c.String("ovs-rundir"), File: c.String("database"), Schema: c.String("schema")}
			return ovspod.Database{Layout: l, Log: log}.Run(c.Context)
		},
	}
}

func openvswitchSwitchCommand() *cli.Command {
	return &cli.Command{
		Name:  "switch",
		Usage: "run ovs-vswitchd, and start it again when it dies",
		Description: "Waits for the database. Loads the kernel's module. Before it ends, it saves the flows of all\n" +
			"bridges; when it starts, it restores them before ovs-vswitchd handles packets. Fails while the machine's own\n" +
			"Open vSwitch runs.",
		Flags: slices.Concat([]cli.Flag{
			datapathFlag(config.DatapathSystem, "the node", "system"),
			stringFlag("tunnel-interface", "", "`NIC` whose first address the tunnels have; with the userspace datapath it "+
				"is moved into a bridge (default: the agent decides)"),
			stringFlag("state-dir", "/var/lib/northbound/nics", "`DIR` of the undo files of nics-to-bridge"),
		}, openvswitchFlags(), kubernetesFlags(), logFlags("info")),
		OnUsageError: onUsageError,
		Before:       noArguments,
		Action:       runOpenvswitchSwitch,
	}
}

// openvswitchFlags are those of both commands.
func openvswitchFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "ovs-rundir", Value: "/run/openvswitch",
		Usage: "`DIR` for sockets", EnvVars: append(env("ovs-rundir"), "OVS_RUNDIR")}}
}

func runOpenvswitchSwitch(c *cli.Context) error {
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("ovs-vswitchd makes network interfaces: run it as root")
	}
	d := c.String("datapath-type")
	if d != config.DatapathSystem && d != config.DatapathNetdev {
		return usageError{fmt.Errorf("--datapath-type %q: want %s (kernel module) or %s (userspace)", d,
			config.DatapathSystem, config.DatapathNetdev)}
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube-openvswitch")
	if err != nil {
		return err
	}
	l := ovspod.Layout{Sockets: c.String("ovs-rundir")}
	return ovspod.Switch{Layout: l, Datapath: d, Log: log, Tunnel: ovspod.Tunnel{
		Interface: c.String("tunnel-interface"), Undo: c.String("state-dir"), Server: clients.Server,
		OVS: "unix:" + l.Sockets + "/db.sock", Ovnkube: "/proc/self/exe", Log: log,
	}}.Run(c.Context)
}
