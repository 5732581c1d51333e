// Command kubectl-northbound is the kubectl plugin `kubectl northbound`: what operators ask about a running cluster
// from a laptop. It runs on every platform that kubectl runs on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
	"github.com/northbound-net/northbound/go-controller/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Control-C ends the program at once
	err := start(ctx, os.Args)
	stop()
	os.Exit(report(os.Stderr, err))
}

// start does what the command line says, by whatever name the program was started.
func start(ctx context.Context, args []string) error {
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		return complete(ctx, os.Stdout, args[1:])
	}
	return newApp().RunContext(ctx, args)
}

// report prints an error. It returns the exit code: 0 without an error, that of a tool, or 1.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(w, "kubectl northbound:", strings.ReplaceAll(text, "\n", "\nkubectl northbound: "))
	}
	var coder cli.ExitCoder
	if errors.As(err, &coder) {
		return coder.ExitCode()
	}
	return 1
}

func newApp() *cli.App {
	return &cli.App{
		Name:      "kubectl-northbound",
		Usage:     "look at a cluster's network from a laptop",
		UsageText: "kubectl northbound [FLAGS] COMMAND [ARGUMENTS]",
		Description: "Tools run where they must, on a node or beside the databases, and their output comes here through\n" +
			"the API server. They change nothing. Flags precede the command: what follows belongs to the tool.\n\n" +
			"Examples:\n" +
			"   kubectl northbound status\n" +
			"   kubectl northbound doctor n1\n" +
			"   kubectl northbound explain svc/web -n shop\n" +
			"   kubectl northbound nbctl show\n" +
			"   kubectl northbound ofctl n1 dump-flows br-int\n" +
			"   kubectl northbound -n shop tcpdump web-1 -c 10 tcp port 80",
		Version:         version.Get().Version,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubeconfig", Usage: "kubeconfig `FILE`",
				DefaultText: "as kubectl: $KUBECONFIG, ~/.kube/config"},
			&cli.StringFlag{Name: "context", Usage: "`CONTEXT` of the kubeconfig", DefaultText: "the current one"},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, DefaultText: "the context's",
				Usage: "`NAMESPACE` of pods and services whose names come without one"},
			&cli.StringFlag{Name: "system-namespace", Value: "ovn-kubernetes",
				Usage: "`NAMESPACE` that Northbound is installed in"},
			&cli.StringFlag{Name: "node", DefaultText: "any", Usage: "`NODE` on which tools of the control plane run"},
		},
		Commands:       commands(),
		ExitErrHandler: func(*cli.Context, error) {}, // main says it, once
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return fmt.Errorf("no command %q: %s", c.Args().First(), unknown(c.Args().First(), c.App.Commands))
			}
			return cli.ShowAppHelp(c)
		},
	}
}

// unknown suggests a command that exists.
func unknown(given string, all []*cli.Command) string {
	for _, c := range all {
		if smetrics.WagnerFischer(given, c.Name, 1, 1, 1) <= 2 {
			return "did you mean " + c.Name + "?"
		}
	}
	return "`kubectl northbound --help` lists them"
}

// session prepares the connection to the cluster.
func session(c *cli.Context) (*remote.Session, error) {
	return remote.New(remote.Options{Kubeconfig: c.String("kubeconfig"), Context: c.String("context"),
		Namespace: c.String("system-namespace"), Default: c.String("namespace")})
}
