// Command sandbox makes, uses and removes a real Kubernetes cluster with OVN on
// one machine; package sandbox has the details.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newApp().RunContext(ctx, os.Args)
	stop()
	var child *exec.ExitError
	if errors.As(err, &child) && child.ExitCode() > 0 {
		os.Exit(child.ExitCode()) // it has said why itself
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "sandbox",
		Usage: "a real Kubernetes cluster with OVN on this machine",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Value: sandbox.DefaultName,
				Usage: "`NAME` of the sandbox; several live side by side", EnvVars: []string{"SANDBOX_NAME"}},
			&cli.StringFlag{Name: "dir", Value: sandbox.DefaultStateRoot,
				Usage: "`DIR` that holds the state of sandboxes", EnvVars: []string{"SANDBOX_DIR"}},
		},
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 0 {
				return fmt.Errorf("there is no command %q: `sandbox --help` names them", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		ExitErrHandler: func(*cli.Context, error) {}, // main says it, once
		Commands: []*cli.Command{
			upCommand(), fetchCommand(), downCommand(), statusCommand(),
			kubectlCommand(), kubectlInPlaceCommand(),
			databaseCommand("nbctl", "ovn-nbctl", "Northbound"), databaseCommand("sbctl", "ovn-sbctl", "Southbound"),
			ovnkubeCommand(), execCommand(), nodeCommand(), logsCommand(), restartCommand(), metricsCommand(),
			demoCommand(), initCommand(),
		},
	}
}

func open(c *cli.Context) (*sandbox.Cluster, error) {
	return sandbox.Open(c.String("dir"), c.String("name"))
}

// noArgs refuses arguments, which a misspelt flag often is.
func noArgs(c *cli.Context) error {
	if c.Args().Len() > 0 {
		return fmt.Errorf("unexpected argument %q: want `sandbox %s [FLAGS]`", c.Args().First(), c.Command.Name)
	}
	return nil
}

// attached runs a command with this process's terminal.
func attached(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
