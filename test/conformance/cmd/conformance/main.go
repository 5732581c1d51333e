// Command conformance runs Kubernetes' networking specs on a sandbox and writes docs/conformance.md. See package
// conformance.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/conformance"
	"github.com/northbound-net/northbound/test/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newApp().RunContext(ctx, os.Args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "conformance",
		Usage: "Kubernetes' own tests of networking, on a sandbox",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "repository", Value: ".", Usage: "`DIR` of the repository, with bin, lists and docs"},
			&cli.StringFlag{Name: "name", Value: "conformance", Usage: "`NAME` of the sandbox"},
			&cli.StringFlag{Name: "ovn", EnvVars: []string{sandbox.OVNVariable},
				Usage: "`SOURCE` of OVN, as of sandbox up (default: newest, or rootfs if that is not available)"},
			&cli.StringFlag{Name: "focus", Usage: "run only specs that `REGEXP` matches, and write no document"},
			&cli.BoolFlag{Name: "resume", Usage: "continue with the results of an earlier run: specs with the expected " +
				"result do not run again"},
			&cli.IntFlag{Name: "procs", Value: 4, Usage: "run `N` specs at a time, except those that must run alone"},
			&cli.BoolFlag{Name: "list", Usage: "only list the specs that would run"},
		},
		Commands: []*cli.Command{{
			Name: "cluster-policies", HideHelpCommand: true, Action: runClusterPolicies,
			Usage: "network-policy-api's own tests of ClusterNetworkPolicies instead; writes docs/conformance/",
		}, {
			Name: "primary-networks", HideHelpCommand: true, Action: runPrimaryNetworks,
			Usage: "the specs beside primary networks, then inside one; writes docs/conformance/primary-networks.md",
			Flags: []cli.Flag{&cli.StringFlag{Name: "only", Usage: "run `PART`, beside or inside, and write no document"}},
		}},
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // main prints errors
		Action:          run,
	}
}

func run(c *cli.Context) error {
	if c.Args().Len() > 0 {
		return fmt.Errorf("unexpected argument %q: `conformance --help` names the flags", c.Args().First())
	}
	root, o, err := options(c)
	if err != nil {
		return err
	}
	suite := filepath.Join(o.Bin, "e2e.test")
	version, err := kubernetesVersion(c.Context, suite)
	if err != nil {
		return err
	}
	l, selection, err := selectSpecs(c.Context, filepath.Join(root, "test", "conformance"), "failing.txt", suite)
	if err != nil {
		return err
	}
	if c.Bool("list") {
		fmt.Fprintln(c.App.Writer, strings.Join(selection.Run, "\n"))
		return nil
	}
	system, err := conformance.Provide(c.Context, o.Bin, c.String("ovn"), o.Out)
	if err != nil {
		return err
	}
	var older map[string]string
	o.OVN = system.From
	chart := os.Getenv(sandbox.InstallVariable) == sandbox.InstallChart
	o.Failing, older = l.Known(system.Release, chart)
	o.Work = filepath.Join(o.Work, "ovn-"+system.OVN) // do not continue with the results of another OVN
	if chart {
		o.Work += "-chart"
	}
	results, ran := conformance.Run(c.Context, o, selection.Run)
	verdict := conformance.Judge(selection.Run, o.Failing, results)
	tell(c.App.Writer, verdict)
	if o.Focus != nil || results == nil {
		return errors.Join(ran, verdict.Err())
	}
	document := conformance.Document{Chart: chart, Version: version, System: system.System, Selection: selection,
		Failing: o.Failing, Older: older, Results: results}
	file := verdict.File(root, o.Work, chart)
	fmt.Fprintln(c.App.Writer, "They are in", file)
	return errors.Join(ran, write(file, document), verdict.Err())
}

// tell prints the counts of a verdict.
func tell(w io.Writer, v conformance.Verdict) {
	fmt.Fprintf(w, "%d passed, %d failed as known, %d failed, %d skipped themselves, %d not run\n",
		len(v.Passed), len(v.Failing), len(v.Broken), len(v.Skipped), len(v.Missing))
}

// options reads the flags. root is the directory of the repository.
func options(c *cli.Context) (root string, o conformance.Options, err error) {
	if root, err = filepath.Abs(c.String("repository")); err != nil {
		return "", o, err
	}
	o = conformance.Options{
		Bin: filepath.Join(root, "bin"), Work: filepath.Join(root, "bin", "conformance.d"),
		Sandbox: c.String("name"), Resume: c.Bool("resume"), Procs: c.Int("procs"), Out: c.App.Writer,
	}
	if o.Procs < 1 {
		return "", o, fmt.Errorf("--procs %d: want 1 or more", o.Procs)
	}
	if c.IsSet("focus") {
		if o.Focus, err = regexp.Compile(c.String("focus")); err != nil {
			return "", o, fmt.Errorf("parsing --focus: %w", err)
		}
	}
	return root, o, nil
}

// selectSpecs reads the lists in dir, and selects from suite's specs.
func selectSpecs(ctx context.Context, dir, failing, suite string) (l conformance.Lists, s conformance.Selection,
	err error) {
	l, err = conformance.ReadLists(filepath.Join(dir, "exclude.txt"), filepath.Join(dir, failing))
	if err != nil {
		return l, s, err
	}
	specs, err := conformance.Specs(ctx, suite)
	if err != nil {
		return l, s, err
	}
	s, err = l.Select(specs)
	return l, s, err
}

func kubernetesVersion(ctx context.Context, suite string) (string, error) {
	out, err := exec.CommandContext(ctx, suite, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking e2e.test for its version: %w", err)
	}
	m := regexp.MustCompile(`v\d+\.\d+\.\d+`).Find(out)
	if m == nil {
		return "", fmt.Errorf("asking e2e.test for its version: %q names none", out)
	}
	return "Kubernetes " + string(m), nil
}

// write writes a document into a file.
func write(file string, d interface{ Write(io.Writer) error }) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if err := d.Write(f); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", file, err), f.Close())
	}
	return f.Close()
}
