package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/conformance"
)

// runClusterPolicies runs the tests of ClusterNetworkPolicies. When all were run and have passed, the tests' report
// goes into docs.
func runClusterPolicies(c *cli.Context) error {
	if c.Args().Len() > 0 {
		return fmt.Errorf("unexpected argument %q: flags come before the command", c.Args().First())
	}
	root, o, err := options(c)
	if err != nil {
		return err
	}
	version, err := exec.CommandContext(c.Context, filepath.Join(o.Bin, "ovnkube"), "--version").Output()
	if err != nil {
		return fmt.Errorf("asking ovnkube for its version: %w", err)
	}
	o.Version = strings.TrimSpace(strings.TrimPrefix(string(version), "ovnkube version"))
	system, err := conformance.Provide(c.Context, o.Bin, c.String("ovn"), o.Out)
	if err != nil {
		return err
	}
	o.OVN = system.From
	o.Work = filepath.Join(o.Work, "ovn-"+system.OVN)
	report, err := conformance.RunClusterPolicies(c.Context, o)
	if err != nil || o.Focus != nil {
		return err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return fmt.Errorf("reading the tests' report: %w", err)
	}
	file := filepath.Join(root, "docs", "conformance", filepath.Base(report))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keeping the tests' report: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("keeping the tests' report: %w", err)
	}
	fmt.Fprintln(o.Out, "The tests' report is in", file)
	return nil
}
