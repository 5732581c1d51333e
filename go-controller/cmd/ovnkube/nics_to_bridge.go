package main

import (
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// watchdogSilence is how long a mover may say nothing to its watchdog: longer
// than any step takes, with which it speaks.
const watchdogSilence = 30 * time.Second

// nicsToBridgeCommand is `ovnkube nics-to-bridge`.
func nicsToBridgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "nics-to-bridge",
		Usage:     "move NICs into Open vSwitch bridges: breth0 gets eth0, its addresses, routes and MAC",
		ArgsUsage: "NIC...",
		Description: "Prints what it changes. Running it again changes nothing, or finishes what was interrupted.\n" +
			"Unless the API server or --confirm-target answers after the move, and also when the command dies half-way,\n" +
			"the NIC gets back all that it had. `ovnkube bridges-to-nic breth0` is the inverse.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("datapath-type", "", "`TYPE` of the bridges: system (kernel module) or netdev (userspace) (default: that of a bridge that is there, else external_ids:ovn-bridge-datapath-type, else system)"),
			stringFlag("confirm-target", "", "what must answer after the move: `HOST:PORT` (a connection) or an IP address (a ping) (default: the API server, else a default router behind the NIC that answers a ping before)"),
			&cli.DurationFlag{Name: "confirm-timeout", Value: 30 * time.Second, Usage: "how long it may take to answer", EnvVars: env("confirm-timeout")},
			boolFlag("no-confirm", "let the move stand although nothing has answered"),
			dryRunFlag(),
			boolFlag("boot", "put back into effect, after a reboot, what was moved and confirmed before; nothing has to answer"),
		}, nicFlags(), kubernetesFlags(), []cli.Flag{configFlag()}, logFlags()),
		Before: someArguments("NIC", "eth0"),
		Action: runNICsToBridge,
	}
}

// bridgesToNICCommand is `ovnkube bridges-to-nic`.
func bridgesToNICCommand() *cli.Command {
	return &cli.Command{
		Name:      "bridges-to-nic",
		Usage:     "the inverse of nics-to-bridge: give NICs back what they had, and remove the bridges",
		ArgsUsage: "BRIDGE...",
		Description: "Prints what it changes. It reads the undo file of nics-to-bridge or, if that is lost, what is on the bridge.\n" +
			"What the bridge has got meanwhile goes to the NIC too. When it dies half-way, its watchdog finishes the work.",
		Flags:  slices.Concat(nicFlags(), []cli.Flag{dryRunFlag(), configFlag()}, logFlags()),
		Before: someArguments("bridge", "breth0"),
		Action: func(c *cli.Context) error {
			bridges, err := interspersed(c)
			if err != nil {
				return err
			}
			m, done, err := newMover(c)
			if err != nil {
				return err
			}
			defer done()
			return m.Return(c.Context, bridges, c.Bool("dry-run"))
		},
	}
}

// nicWatchdogCommand is the watchdog of the other two, which start it.
func nicWatchdogCommand() *cli.Command {
	return &cli.Command{
		Name:   "nic-watchdog",
		Usage:  "takes a move of a NIC back when the process that makes it dies; for nics-to-bridge to start",
		Hidden: true,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "nic", Required: true},
			&cli.StringFlag{Name: "session", Required: true},
			&cli.DurationFlag{Name: "silence", Value: watchdogSilence},
		}, nicFlags(), logFlags()),
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

// nicFlags are those of all three.
func nicFlags() []cli.Flag {
	return []cli.Flag{
		ovsFlag(),
		stringFlag("state-dir", "/var/lib/northbound/nics", "`DIR` of the undo files, one per NIC"),
	}
}

func dryRunFlag() cli.Flag { return boolFlag("dry-run", "print what would change, and change nothing") }

// someArguments checks that a command has arguments.
func someArguments(what, example string) cli.BeforeFunc {
	return func(c *cli.Context) error {
		args, err := interspersed(c)
		if err == nil && len(args) == 0 {
			err = fmt.Errorf("%s: which %s? Give its name, such as %s", c.Command.Name, what, example)
		}
		if err != nil {
			return usageError{err}
		}
		return nil
	}
}

// interspersed sets the flags that stand between and after the arguments, and
// answers the arguments. The library would take `eth0 --dry-run` for two names.
func interspersed(c *cli.Context) (args []string, err error) {
	for rest := c.Args().Slice(); len(rest) > 0; rest = rest[1:] {
		if !strings.HasPrefix(rest[0], "-") {
			args = append(args, rest[0])
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		i := slices.IndexFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		if i < 0 {
			return nil, fmt.Errorf("flag provided but not defined: -%s", name)
		}
		if _, isBool := c.Command.Flags[i].(*cli.BoolFlag); isBool && !given {
			value, given = "true", true
		}
		if !given {
			if rest = rest[1:]; len(rest) == 0 {
				return nil, fmt.Errorf("flag needs an argument: -%s", name)
			}
			value = rest[0]
		}
		if err := c.Set(name, value); err != nil {
			return nil, fmt.Errorf("invalid value %q for flag -%s: %w", value, name, err)
		}
	}
	return args, nil
}

// newMover connects to Open vSwitch and the kernel. A terminal that goes, for
// instance because the NIC is on the way to it, does not end the work.
func newMover(c *cli.Context) (m *nicmove.Mover, done func(), err error) {
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
		OVS: db, Kernel: kernel, Store: nicmove.Store{Dir: c.String("state-dir")}, Out: c.App.Writer, Now: time.Now,
		Guard: func(u nicmove.Undo) []string {
			return []string{"/proc/self/exe", "nic-watchdog", "--nic", u.NIC, "--session", u.Session, "--state-dir", c.String("state-dir"), "--ovs-address", c.String("ovs-address")}
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
		return usageError{fmt.Errorf("--datapath-type %q: want %s (kernel module) or %s (userspace)", o.Datapath, config.DatapathSystem, config.DatapathNetdev)}
	case o.Unconfirmed && c.String("confirm-target") != "":
		return usageError{errors.New("--no-confirm and --confirm-target: give one of them")}
	case o.Timeout <= 0:
		return usageError{fmt.Errorf("--confirm-timeout %s: want a time such as 30s", o.Timeout)}
	}
	nics, err := interspersed(c)
	if err != nil {
		return err
	}
	if o.Target, err = confirmTarget(c); err != nil {
		return err
	}
	m, done, err := newMover(c)
	if err != nil {
		return err
	}
	defer done()
	return m.Move(c.Context, nics, o)
}

// confirmTarget is what must answer after a move; nil when nothing is known.
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
