package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/manifest"
)

// manifestFlag names files with manifests.
func manifestFlag(usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: usage}
}

// manifests reads the files of manifestFlag, and that of hostsFlag.
func manifests(c *cli.Context) ([]cluster.Object, error) {
	objects, broken := manifestsIn(c, c.StringSlice("filename"))
	named, err := hosts(c)
	return append(objects, named...), errors.Join(broken, err)
}

// manifestsIn reads files. It prints warnings and ignored kinds. The error describes broken
// objects; the sound ones are returned with it.
func manifestsIn(c *cli.Context, files []string) ([]cluster.Object, error) {
	m := readManifests(c, files)
	for _, warning := range m.Warnings {
		warn(c.App.ErrWriter, warning)
	}
	for _, k := range m.Ignored {
		fmt.Fprintf(c.App.ErrWriter, "ovnkube: note: %d of kind %s (%s) left out: the network does not depend on it\n",
			k.Count, k.Kind, k.APIVersion)
	}
	errs := m.Errors
	for _, p := range m.Problems {
		errs = append(errs, p)
	}
	return m.Objects, errors.Join(errs...)
}

// readManifests is what files say. Policies are decoded with the limits that the flags have, so published settings must
// be adopted before.
func readManifests(c *cli.Context, files []string) *manifest.Manifests {
	return loadManifests(c, files).Decode(kinds.Within(policyLimits(c)))
}

// loadManifests reads files once: standard input is there only once.
func loadManifests(c *cli.Context, files []string) manifest.Files {
	key := "manifests " + strings.Join(files, "\x00")
	if m, ok := c.App.Metadata[key].(manifest.Files); ok {
		return m
	}
	m := manifest.Load(kinds.All(), files, c.App.Reader)
	c.App.Metadata[key] = m
	return m
}

// adoptManifests sets the flags that are unset from the settings among manifests, if a snapshot of a cluster has them.
func adoptManifests(c *cli.Context, files []string) error {
	return adopt(c, loadManifests(c, files).Settings(), clusterSettings())
}

// noArguments refuses arguments that are not flags: usually files without -f. The library would ignore all flags
// after them.
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
