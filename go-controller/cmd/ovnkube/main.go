// Command ovnkube has a subcommand, in a file of its own, for each program of the product except the CNI plugin.
// Only this package reads flags and environment variables.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/version"
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
		Version:         version.Get().Version,
		HideHelpCommand: true,
		// The scripts of `ovnkube completion` ask for what there is.
		EnableBashCompletion: true,
		// File names may contain commas.
		DisableSliceFlagSeparator: true,
		Commands: []*cli.Command{
			masterCommand(), nodeCommand(), preflightCommand(), doctorCommand(), translateCommand(), planCommand(),
			approveCommand(), explainCommand(), policyCommand(), tenantCommand(), objectsCommand(),
			masterInitCommand(), minionInitCommand(), gatewayInitCommand(), gatewayHelperCommand(), watcherCommand(),
			nicsToBridgeCommand(), bridgesToNICCommand(), nicWatchdogCommand(),
			signerCommand(), certificatesCommand(), databaseCommand(), openvswitchCommand(), diagnosticsCommand(),
			metricsCommand(),
			tcpdumpCommand(), cleanupCommand(),
			completionCommand(), manCommand(), versionCommand(),
		},
		// report prints every error, once.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usageError{fmt.Errorf("no command %q: %s", c.Args().First(),
					unknown(c.Args().First(), commandNames(c.App.Commands)))}
			}
			return cli.ShowAppHelp(c)
		},
	}
	addExamples(app.Commands, "")
	for i, c := range app.Commands {
		c.OnUsageError = onUsageError // commands do not inherit it from the program
		if c.Before == nil {
			c.Before = noArguments
		}
		if hasFlag(c, configFlagName) {
			c.Before = withSettings(c.Before)
		}
		if c.ArgsUsage != "" && !c.SkipFlagParsing {
			app.Commands[i] = flagsAnywhere(c)
		}
	}
	return app
}

// withSettings fills unset flags from the settings file and, if the command has --ovs-address, from Open vSwitch.
func withSettings(before cli.BeforeFunc) cli.BeforeFunc {
	return func(c *cli.Context) error {
		if err := before(c); err != nil {
			return err
		}
		return readSettings(c, hasFlag(c.Command, "ovs-address"))
	}
}

func commandNames(cs []*cli.Command) []string {
	var out []string
	for _, c := range cs {
		if !c.Hidden {
			out = append(out, c.Name)
		}
	}
	return out
}

// usageError is an error in the command line. report adds a hint at --help.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// report prints an error to w, one line for each of several joined errors. It returns the exit code: 0 without an
// error, the command's own code, or 1.
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
	if reflect.TypeOf(err) == reflect.TypeOf(usageError{}) {
		err = errors.Unwrap(err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	// An error of fmt.Errorf with several %w unwraps to a list, too, but is one line.
	if !ok || reflect.TypeOf(err) != reflect.TypeOf(errors.Join(err)) {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}
