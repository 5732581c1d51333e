package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

func policyMatrixCommand() *cli.Command {
	return &cli.Command{
		Name:  "matrix",
		Usage: "print who may connect to whom, and to which ports",
		Description: "Pods that no policy can tell apart are one class, named by their namespaces and labels. So are\n" +
			"addresses outside the cluster. Each line says to which ports of one class the pods of another may connect.\n\n" +
			"Without -f, asks about the cluster; with -f, about manifests and no server.\n\n" +
			"Exit code 0: printed, or as expected; 2: not as --expect says; 1: an error.",
		Flags: append(policyFlags("or dot (a graph for graphviz)"),
			namespaceFlag(),
			&cli.StringFlag{Name: "expect", Usage: "`FILE` with a matrix as -o json prints it: print what differs from it, " +
				"instead of the matrix"}),
		Before: withSettings(func(c *cli.Context) error {
			return errors.Join(noArguments(c), clusterOrManifests(c))
		}),
		OnUsageError: onUsageError,
		Action:       runPolicyMatrix,
	}
}

func namespaceFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "namespace", Aliases: []string{"n"},
		Usage: "only connections from or to pods of this `NAMESPACE`; repeatable"}
}

func runPolicyMatrix(c *cli.Context) error {
	expected := c.String("expect")
	graph := c.String("output") == "dot" && expected == ""
	write, err := printer(c, asTable)
	if err != nil && !graph {
		return usageError{fmt.Errorf("%w, or dot without --expect", err)}
	}
	var old *reach.Matrix
	if expected != "" {
		b, err := os.ReadFile(expected)
		if err != nil {
			return fmt.Errorf("reading --expect: %w", err)
		}
		if old, err = reach.ReadMatrix(b); err != nil {
			return fmt.Errorf("reading --expect %s: %w", expected, err)
		}
	}
	var m *reach.Matrix
	broken, err := reachable(c, func(r *reach.Cluster) (err error) {
		m, err = r.Matrix(c.StringSlice("namespace"))
		return err
	})
	if err != nil {
		return errors.Join(broken, err)
	}
	if old == nil {
		if graph {
			return errors.Join(m.WriteDot(c.App.Writer), broken)
		}
		return errors.Join(write(m), broken)
	}
	differences := m.Since(old)
	if err := errors.Join(write(differences), broken); err != nil {
		return err
	}
	if len(differences) > 0 {
		return cli.Exit("", exitDenied)
	}
	return nil
}
