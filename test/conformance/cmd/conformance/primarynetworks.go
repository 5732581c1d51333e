package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/conformance"
	"github.com/northbound-net/northbound/test/sandbox"
)

// runPrimaryNetworks runs the specs beside primary networks, and inside one. When all were run, it writes the document.
func runPrimaryNetworks(c *cli.Context) error {
	parts, err := partsOf(c)
	if err != nil {
		return err
	}
	root, o, err := options(c)
	if err != nil {
		return err
	}
	o.Kinds = filepath.Join(root, "dist", "kubernetes")
	version, err := kubernetesVersion(c.Context, filepath.Join(o.Bin, "e2e.test"))
	if err != nil {
		return err
	}
	system, err := conformance.Provide(c.Context, o.Bin, c.String("ovn"), o.Out)
	if err != nil {
		return err
	}
	o.OVN = system.From
	d := conformance.PrimaryDocument{Version: version, System: system.System}
	complete := true
	var errs []error
	for _, part := range parts {
		ran, all, err := runPart(c, root, o, part, system, &d)
		if errs = append(errs, err); !ran {
			return errors.Join(errs...)
		}
		complete = complete && all
	}
	if o.Focus == nil && !c.IsSet("only") {
		file := conformance.PrimaryFile(root, o.Work, complete)
		fmt.Fprintln(c.App.Writer, "They are in", file)
		errs = append(errs, write(file, d))
	}
	return errors.Join(errs...)
}

func partsOf(c *cli.Context) ([]conformance.Part, error) {
	if os.Getenv(sandbox.InstallVariable) != "" {
		return nil, fmt.Errorf("%s is set: primary-networks runs on a sandbox without the chart", sandbox.InstallVariable)
	}
	if c.Args().Len() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: flags come before the command", c.Args().First())
	}
	switch only := conformance.Part(c.String("only")); {
	case !c.IsSet("only"):
		return []conformance.Part{conformance.Beside, conformance.Inside}, nil
	case only == conformance.Beside || only == conformance.Inside:
		return []conformance.Part{only}, nil
	default:
		return nil, fmt.Errorf("--only %q: want %s or %s", only, conformance.Beside, conformance.Inside)
	}
}

// runPart runs one part, and puts the results into the document. It reports whether specs ran, and whether all did.
func runPart(c *cli.Context, root string, o conformance.Options, part conformance.Part, system conformance.System,
	d *conformance.PrimaryDocument) (ran, all bool, err error) {
	failing, into := "failing.txt", &d.Beside
	if part == conformance.Inside {
		failing, into = "failing-inside.txt", &d.Inside
	}
	l, selection, err := selectSpecs(c.Context, filepath.Join(root, "test", "conformance"), failing,
		filepath.Join(o.Bin, "e2e.test"))
	if err != nil {
		return false, false, err
	}
	o.Part = part
	o.Work = filepath.Join(o.Work, "ovn-"+system.OVN+"-"+string(part))
	o.Failing, _ = l.Known(system.Release, false)
	results, err := conformance.Run(c.Context, o, selection.Run)
	v := conformance.Judge(selection.Run, o.Failing, results)
	tell(c.App.Writer, v)
	*into = conformance.Document{Version: d.Version, System: d.System, Selection: selection, Failing: o.Failing,
		Results: results}
	if part == conformance.Beside {
		traffic, failed := o.Traffic()
		d.Traffic = traffic
		err = errors.Join(err, failed)
	}
	return results != nil && c.Err() == nil, len(v.Missing) == 0, errors.Join(err, v.Err())
}
