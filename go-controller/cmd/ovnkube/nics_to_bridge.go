package main

import (
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// watchdogSilence is how long the watchdog waits for the next message of a mover, which sends one with every step.
// It is longer than any step takes.
const watchdogSilence = 30 * time.Second

// nicsToBridgeCommand is `ovnkube nics-to-bridge`.
func nicsToBridgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "nics-to-bridge",
		Usage:     "move NICs into Open vSwitch bridges: breth0 takes over eth0, its addresses, routes and MAC",
		ArgsUsage: "NIC...",
		Description: "Prints its changes. A second run changes nothing, or finishes what was interrupted. The move is\n" +
			"undone if the API server or --confirm-target does not answer after it, or if the command dies\n" +
			"half-way. `ovnkube bridges-to-nic breth0` is the inverse.",
		Flags: slices.Concat([]cli.Flag{
			datapathFlag("", "the bridges", "that of an existing bridge, else external_ids:ovn-bridge-datapath-type, "+
				"else system"),
			stringFlag("confirm-target", "", "`TARGET` that must answer after the move: HOST:PORT (a TCP connection) or an "+
				"IP address (a ping) (default: the API server, else a default router that answers a ping before the move)"),
			durationFlag("confirm-timeout", 30*time.Second, "`DURATION` that the target has to answer"),
			boolFlag("no-confirm", "keep the move without asking any target"),
			dryRunFlag(),
			boolFlag("boot", "after a reboot, restore moves that were confirmed before, without asking any target"),
		}, nicFlags(), kubernetesFlags(), []cli.Flag{configFlag()}, logFlags("info")),
		Before: someArguments("NIC", "eth0"),
		Action: runNICsToBridge,
	}
}

// bridgesToNICCommand is `ovnkube bridges-to-nic`.
func bridgesToNICCommand() *cli.Command {
	return &cli.Command{
		Name:      "bridges-to-nic",
		Usage:     "the inverse of nics-to-bridge: move addresses and routes back to the NICs and remove the bridges",
		ArgsUsage: "BRIDGE...",
		Description: "Prints its changes. It reads the undo file of nics-to-bridge or, if that is lost, the bridge's\n" +
			"configuration. Addresses and routes that the bridge got since the move go to the NIC as well. If\n" +
			"the command dies half-way, its watchdog finishes the work.",
		Flags:  slices.Concat(nicFlags(), []cli.Flag{dryRunFlag(), configFlag()}, logFlags("info")),
		Before: someArguments("bridge", "breth0"),
		Action: func(c *cli.Context) error {
			m, done, err := newMover(c)
			if err != nil {
				return err
			}
			defer done()
			return m.Return(c.Context, c.Args().Slice(), c.Bool("dry-run"))
		},
	}
}

// nicWatchdogCommand is the watchdog process that nics-to-bridge and bridges-to-nic start.
func nicWatchdogCommand() *cli.Command {
	return &cli.Command{
		Name:   "nic-watchdog",
		Usage:  "finish or undo the move of a NIC when the process that makes it dies; nics-to-bridge starts it",
		Hidden: true,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "nic", Required: true},
			&cli.StringFlag{Name: "session", Required: true},
			&cli.DurationFlag{Name: "silence", Value: watchdogSilence},
		}, nicFlags(), logFlags("info")),
		Action: func(c *cli.Context) error {
			m, done, err := newMover(c)
			if err != nil {
				return err
			}
			defer done()
			m.Out = c.App.ErrWriter
			o := nicmove.WatchOptions{NIC: c.String("nic"), Session: c.String("session"), Silence: c.Duration("silence")}
			return nicmove.Watch(c.Context, m, o, c.App.Reader, c.App.Writer)
		},
	}
}

// nicFlags are the common flags of the three commands.
func nicFlags() []cli.Flag {
	return []cli.Flag{
		ovsFlag(),
		stringFlag("state-dir", "/var/lib/northbound/nics", "`DIR` of the undo files, one for each NIC"),
	}
}

func dryRunFlag() cli.Flag { return boolFlag("dry-run", "print what would change, and change nothing") }

// someArguments checks that a command has arguments.
func someArguments(what, example string) cli.BeforeFunc {
	return func(c *cli.Context) error {
		if c.NArg() == 0 {
			return usageError{fmt.Errorf("%s: which %s? Give its name, such as %s", c.Command.Name, what, example)}
		}
		return nil
	}
}

// newMover connects to Open vSwitch and the kernel. It ignores the signals of a lost terminal: a terminal that is
// reached through the NIC may be lost during the move.
func newMover(c *cli.Context) (m *nicmove.Mover, done func(), err error) {
	return moverOf(c, c.String("state-dir"))
}

// moverOf is newMover with the undo files in a directory.
func moverOf(c *cli.Context, dir string) (m *nicmove.Mover, done func(), err error) {
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return nil, nil, err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return nil, nil, err
	}
	db, err := ovs.Open(c.Context, c.String("ovs-address"), log)
	if err != nil {
		kernel.Close()
		return nil, nil, fmt.Errorf("%w; is Open vSwitch running?", err)
	}
	m = &nicmove.Mover{
		OVS: db, Kernel: kernel, Store: nicmove.Store{Dir: dir}, Out: c.App.Writer, Now: time.Now,
		Guard: func(u nicmove.Undo) []string {
			return []string{"/proc/self/exe", "nic-watchdog", "--nic", u.NIC, "--session", u.Session,
				"--state-dir", dir, "--ovs-address", c.String("ovs-address")}
		},
	}
	return m, func() { db.Close(); kernel.Close() }, nil
}

func runNICsToBridge(c *cli.Context) error {
	o := nicmove.Options{
		Datapath: c.String("datapath-type"), Timeout: c.Duration("confirm-timeout"), Unconfirmed: c.Bool("no-confirm"),
		DryRun: c.Bool("dry-run"), Boot: c.Bool("boot"),
	}
	switch {
	case o.Datapath != "" && o.Datapath != config.DatapathSystem && o.Datapath != config.DatapathNetdev:
		return usageError{fmt.Errorf("--datapath-type %q: want %s (kernel module) or %s (userspace)",
			o.Datapath, config.DatapathSystem, config.DatapathNetdev)}
	case o.Unconfirmed && c.String("confirm-target") != "":
		return usageError{errors.New("--no-confirm and --confirm-target: give one of them")}
	}
	var err error
	if o.Target, err = confirmTarget(c); err != nil {
		return err
	}
	m, done, err := newMover(c)
	if err != nil {
		return err
	}
	defer done()
	return m.Move(c.Context, c.Args().Slice(), o)
}

// confirmTarget returns what must answer after a move. Without a flag or an API server it returns nil, and the
// mover chooses.
func confirmTarget(c *cli.Context) (*nicmove.Target, error) {
	if t := c.String("confirm-target"); t != "" {
		target, err := nicmove.ParseTarget(t)
		if err != nil {
			return nil, usageError{fmt.Errorf("--confirm-target %w", err)}
		}
		return target, nil
	}
	k := kubernetesConfig(c)
	if c.Bool("no-confirm") || c.Bool("boot") || k.APIServer == "" && k.Kubeconfig == "" {
		return nil, nil
	}
	clients, err := client.New(k, "northbound-nics-to-bridge")
	if err != nil {
		return nil, err
	}
	return nicmove.APIServer(clients.Server), nil
}
