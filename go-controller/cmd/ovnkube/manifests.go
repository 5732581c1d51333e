package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/manifest"
)

// manifestFlag says where manifests are.
func manifestFlag(usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: usage}
}

// manifests reads what manifestFlag names. What can be worked without is told
// on w; what is broken is in the error, and what is not is returned besides.
func manifests(c *cli.Context, w io.Writer) ([]cluster.Object, error) {
	m := manifest.Read(kinds.All(), c.StringSlice("filename"), c.App.Reader)
	for _, warning := range m.Warnings {
		warn(w, warning)
	}
	for _, k := range m.Ignored {
		fmt.Fprintf(w, "ovnkube: note: %d of kind %s (%s) left out: the network does not depend on it\n", k.Count, k.Kind, k.APIVersion)
	}
	errs := m.Errors
	for _, p := range m.Problems {
		errs = append(errs, p)
	}
	return m.Objects, errors.Join(errs...)
}

// noArguments refuses arguments that are not flags: a file that was meant to
// follow -f, most of the time. What stands behind one would not be read.
func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		hint := "everything is given by flags"
		if slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "f") }) {
			hint = "files are given with -f, each with its own"
		}
		return usageError{fmt.Errorf("%s: unexpected argument %q: %s", c.Command.Name, c.Args().First(), hint)}
	}
	return nil
}
