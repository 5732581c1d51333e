// Command ovnkube is every program of the product but the CNI plugin: each is
// a subcommand, in a file of its own. Flags and environment are read here and
// nowhere below.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	args, err := classicArgs(os.Args)
	if err == nil {
		err = newApp().RunContext(ctx, args)
	}
	stop()
	os.Exit(report(os.Stderr, err))
}

func newApp() *cli.App {
	app := &cli.App{
		Name:            "ovnkube",
		Usage:           "OVN networking for Kubernetes",
		Version:         productVersion(),
		HideHelpCommand: true,
		// A comma in a file name is part of it.
		DisableSliceFlagSeparator: true,
		Commands: []*cli.Command{
			masterCommand(), nodeCommand(), doctorCommand(), translateCommand(), planCommand(), explainCommand(),
			masterInitCommand(), minionInitCommand(), gatewayInitCommand(), gatewayHelperCommand(), watcherCommand(),
			nicsToBridgeCommand(), bridgesToNICCommand(), nicWatchdogCommand(), versionCommand(),
		},
		// Errors are printed by report, once, whatever their kind.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usageError{fmt.Errorf("no command %q: want one of %s", c.Args().First(), strings.Join(commandNames(c.App.Commands), ", "))}
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands { // the library asks each command, not the program
		c.OnUsageError = onUsageError
		if c.Before == nil {
			c.Before = noArguments
		}
		if hasFlag(c, configFlagName) {
			c.Before = withSettings(c.Before)
		}
	}
	return app
}

// withSettings has the settings file, and for what works on this machine's Open
// vSwitch also that, say what the command line does not.
func withSettings(before cli.BeforeFunc) cli.BeforeFunc {
	return func(c *cli.Context) error {
		if err := before(c); err != nil {
			return err
		}
		return readSettings(c, hasFlag(c.Command, "ovs-address"))
	}
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return usageError{err} }

func commandNames(cs []*cli.Command) []string {
	var out []string
	for _, c := range cs {
		if !c.Hidden {
			out = append(out, c.Name)
		}
	}
	return out
}

// usageError is a command line that can't be meant.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// report prints an error to w, one line each where there are several, and tells the
// exit code: 0 done, 1 failed, or what the command chose.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var coder cli.ExitCoder
	if errors.As(err, &coder) {
		if msg := err.Error(); msg != "" {
			fmt.Fprintln(w, "ovnkube:", msg)
		}
		return coder.ExitCode()
	}
	for _, e := range flatten(err) {
		fmt.Fprintln(w, "ovnkube:", e)
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(w, "Run 'ovnkube COMMAND --help' for usage.")
	}
	return 1
}

// flatten lists the errors that errors.Join joined.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	// fmt.Errorf with several %w can be unwrapped the same way, and is one line.
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}
