package main

import (
	"errors"
	"fmt"
	"io"
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
		Flags: append(policyFlags("table, json or dot (a graph for graphviz)"),
			namespaceFlag(),
			&cli.StringFlag{Name: "expect", Usage: "`FILE` with a matrix as -o json prints it: print what differs from it, " +
				"instead of the matrix"}),
		Before:       withSettings(noArguments),
		OnUsageError: onUsageError,
		Action:       runPolicyMatrix,
	}
}

func namespaceFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "namespace", Aliases: []string{"n"},
		Usage: "only connections from or to pods of this `NAMESPACE`; repeatable"}
}

func runPolicyMatrix(c *cli.Context) error {
	format, expected := c.String("output"), c.String("expect")
	if format != "table" && format != "json" && (format != "dot" || expected != "") {
		return usageError{fmt.Errorf("--output %q: want table, json or, without --expect, dot", format)}
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
		return errors.Join(writeMatrix(c.App.Writer, format, m), broken)
	}
	differences := m.Since(old)
	if err := errors.Join(writePrintable(c.App.Writer, format, differences), broken); err != nil {
		return err
	}
	if len(differences) > 0 {
		return cli.Exit("", exitDenied)
	}
	return nil
}

func writeMatrix(w io.Writer, format string, m *reach.Matrix) error {
	if format == "dot" {
		return m.WriteDot(w)
	}
	return writePrintable(w, format, m)
}

// writePrintable prints a table, or JSON.
func writePrintable(w io.Writer, format string, p printable) error {
	if format == "json" {
		return p.WriteJSON(w)
	}
	return p.WriteText(w)
}
