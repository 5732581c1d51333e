package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// exitDenied is the exit code when not all that was asked about is allowed.
const exitDenied = 2

func policyCommand() *cli.Command {
	subcommands := []*cli.Command{flagsAnywhere(policyCheckCommand()), policyMatrixCommand(),
		policyDiffCommand()}
	return commandGroup("policy", "ask who may connect to whom, and which rule says so", subcommands)
}

// commandGroup is a command that has others, and does nothing by itself.
func commandGroup(name, usage string, subcommands []*cli.Command) *cli.Command {
	return &cli.Command{
		Name:            name,
		Usage:           usage,
		HideHelpCommand: true,
		Subcommands:     subcommands,
		Before:          func(*cli.Context) error { return nil },
		Action: func(c *cli.Context) error {
			names := commandNames(subcommands)
			if c.NArg() > 0 {
				return usageError{fmt.Errorf("%s: no command %q: %s", name, c.Args().First(), unknown(c.Args().First(), names))}
			}
			return usageError{fmt.Errorf("%s: the command is missing: want one of %s", name, strings.Join(names, ", "))}
		},
	}
}

func policyCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "ask whether one may connect to another, and which rule decides",
		ArgsUsage: "SRC DST[:PORT[/PROTOCOL]]",
		Description: "SRC and DST are NAMESPACE/POD or pod/NAMESPACE/NAME, node/NAME, or an IP address. DST may also be\n" +
			"svc/NAMESPACE/NAME: then each of its backends is asked about. It may be a name of DNS: then the addresses\n" +
			"are asked about that the database, or --hosts, has for it. PORT is a number or a name; PROTOCOL is TCP\n" +
			"unless it is given. Without a port, all ports are asked about. An IPv6 address before a port is in brackets.\n\n" +
			"Without -f, asks about the cluster and compares with the Northbound database. With -f, asks about\n" +
			"manifests and no server; --kubeconfig is an error then. The answer is what OVN does\n" +
			"with the rows that the master wants.\n\n" +
			"Exit code 0: all of it is allowed; 2: some or all of it is denied; 1: an error.",
		Flags:        policyFlags(""),
		Before:       withSettings(clusterOrManifests),
		OnUsageError: onUsageError,
		Action:       runPolicyCheck,
	}
}

// clusterOrManifests is the error that the command line names an API server beside manifests, which would not be asked.
// What the environment and the settings file say of a server is ignored then: they are for all commands.
func clusterOrManifests(c *cli.Context) error {
	if len(c.StringSlice("filename")) == 0 {
		return nil
	}
	for _, name := range []string{"kubeconfig", "k8s-apiserver"} {
		if v := c.String(name); v != "" && !fromEnvironment(c, name) {
			return usageError{fmt.Errorf("--%s %s: with -f, manifests are asked about instead of a cluster: want one of both",
				name, v)}
		}
	}
	return nil
}

// fromEnvironment tells whether the environment has the value of a flag.
func fromEnvironment(c *cli.Context, name string) bool {
	for _, f := range c.Command.Flags {
		s, ok := f.(*cli.StringFlag)
		if !ok || s.Name != name {
			continue
		}
		return slices.ContainsFunc(s.EnvVars, func(e string) bool { return os.Getenv(e) == c.String(name) })
	}
	return false
}

// policyFlags are those of all commands about policies.
func policyFlags(formats string) []cli.Flag {
	return slices.Concat([]cli.Flag{printableFlag(asTable, formats), hostsFlag()}, serversOrManifestsFlags(),
		clusterFlags(), topologyFlags(), []cli.Flag{configFlag()}, logFlags("info"))
}

func runPolicyCheck(c *cli.Context) error {
	if c.NArg() != 2 {
		return usageError{fmt.Errorf("policy check: %d arguments: want SRC and DST[:PORT[/PROTOCOL]]", c.NArg())}
	}
	q, err := reach.Ask(c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return usageError{fmt.Errorf("policy check: %w", err)}
	}
	write, err := printer(c, asTable)
	if err != nil {
		return err
	}
	var answer *reach.Check
	broken, err := reachable(c, func(r *reach.Cluster) (err error) {
		answer, err = r.Check(q)
		return err
	})
	if err != nil {
		return errors.Join(broken, err)
	}
	if err := errors.Join(write(answer), broken); err != nil {
		return err
	}
	if answer.Result != reach.Allowed {
		return cli.Exit("", exitDenied)
	}
	return nil
}

// reachable asks about the manifests, or else about the cluster beside the Northbound database. broken describes broken
// objects in manifests: the sound ones are asked about. Nothing is asked about files that are unusable: the answer
// would be about another cluster.
func reachable(c *cli.Context, ask func(*reach.Cluster) error) (broken, err error) {
	log, m, err := logAndMaster(c)
	if err != nil {
		return nil, err
	}
	if len(c.StringSlice("filename")) > 0 {
		if err := unusable(c, c.StringSlice("filename")); err != nil {
			return nil, err
		}
		objects, broken := manifests(c)
		made := offline.New(m.Cluster, objects)
		r, err := wanted(c, made)
		if err != nil {
			return broken, err
		}
		if err := ask(r); err != nil {
			return broken, fmt.Errorf("asking the manifests: %w", err)
		}
		return broken, nil
	}
	if c.IsSet(hostsFlagName) {
		return nil, usageError{errors.New("--hosts is for manifests: want -f, too; else the database has the addresses")}
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	objects, problems, err := liveObjects(ctx, m.Kubernetes, m.Cluster.Policies, log)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		warn(c.App.ErrWriter, p)
	}
	_, err = beside(ctx, c, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		r, err := wanted(c, want)
		if err != nil {
			return err
		}
		r.Compare(session.View(), session)
		return ask(r)
	})
	return nil, err
}

// unusable describes what keeps files from being used: one is missing, cannot be read, or contradicts another.
func unusable(c *cli.Context, files []string) error {
	return errors.Join(readManifests(c, files).Errors...)
}

// wanted is the cluster with the rows that it wants. What is wrong with objects is a warning: the others are asked
// about.
func wanted(c *cli.Context, made *offline.Cluster) (*reach.Cluster, error) {
	db, errs := made.Database()
	for _, p := range made.Problems {
		warn(c.App.ErrWriter, p)
	}
	warnOfNames(c, made)
	return reach.New(made.Core, db), errors.Join(errs...)
}
