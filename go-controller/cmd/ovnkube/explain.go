package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// explanation is what explain prints about an object.
type explanation interface {
	printable
	Compare(c *core.Core, v nb.View) error
}

// explainer explains objects of one kind.
type explainer struct {
	kind, argument string // as on the command line
	noun           string // the kind in texts
	explain        func(c *core.Core, name string, problems []cluster.Problem) (explanation, error)
}

// optionalNamespace is the argument for a kind that has objects with a namespace, and without.
const optionalNamespace = "[NAMESPACE/]NAME"

// explainers lists what explain takes, services first.
func explainers() []explainer {
	service := func(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
		return explain.OfService(c, cluster.ParseName(name), problems)
	}
	out := []explainer{{"svc", "NAMESPACE/NAME", "service", service}}
	for _, k := range names.Kinds() {
		argument := "NAME"
		switch k {
		case names.KindService:
			continue
		case names.KindPod, names.KindPolicy, names.KindMultiPolicy:
			argument = "NAMESPACE/NAME"
		case names.KindSelector:
			argument = "HASH"
		case names.KindExit:
			argument = "NETWORK/NODE"
		}
		kind := strings.ToLower(string(k))
		out = append(out, explainer{kind, argument, kind,
			func(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
				if k == names.KindPod {
					return reach.OfPod(c, cluster.ParseName(name), problems)
				}
				return explain.OfOwner(c, nb.Owner{Kind: k, Name: name}, problems)
			}})
	}
	network := func(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
		return explain.OfNetwork(c, cluster.ParseName(name), problems)
	}
	return append(out, explainer{"network", optionalNamespace, "network", network})
}

func explainCommand() *cli.Command {
	var commands []*cli.Command
	var kinds []string
	for _, e := range explainers() {
		kinds = append(kinds, e.kind)
		commands = append(commands, flagsAnywhere(e.command()))
	}
	return &cli.Command{
		Name:            "explain",
		Usage:           "explain how the network serves an object, or a line that an ACL logged",
		UsageText:       "ovnkube explain KIND NAME\novnkube explain KIND/NAME\novnkube explain --acl LINE",
		HideHelpCommand: true,
		Subcommands:     commands,
		Flags:           slices.Concat([]cli.Flag{aclFlag()}, explainFlags()),
		Before: func(c *cli.Context) error {
			if c.NArg() > 0 && c.NumFlags() > 0 { // the kind's own flags would hide them
				return usageError{errors.New("explain: flags follow the kind: want KIND NAME [FLAGS], or --acl LINE alone")}
			}
			return nil
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("acl") && c.NArg() == 0 {
				return explainACL(c)
			}
			want := "want one of " + strings.Join(kinds, ", ")
			if c.NArg() > 0 {
				kind, name, whole := strings.Cut(c.Args().First(), "/")
				if at := slices.IndexFunc(explainers(), func(e explainer) bool { return isKind(e.kind, kind) }); whole && at >= 0 {
					return runWith(c, explainers()[at].command(), append([]string{name}, c.Args().Tail()...))
				}
				return usageError{fmt.Errorf("explain: no kind %q: %s", c.Args().First(), unknown(kind, kinds))}
			}
			return usageError{fmt.Errorf("explain: the kind is missing: %s, such as svc NAMESPACE/NAME", want)}
		},
	}
}

// command is the subcommand of a kind.
func (e explainer) command() *cli.Command {
	out := &cli.Command{
		Name:      e.kind,
		Usage:     "show the Northbound rows of the " + e.noun,
		ArgsUsage: e.argument,
		Description: "Without -f, reads the " + e.noun + " from the cluster and compares its rows with the Northbound " +
			"database.\nWith -f, reads the " + e.noun + " from manifests and asks no server.\n\n" +
			"Exit code 1: there is no such " + e.noun + ", a server does not answer, or a manifest is broken.",
		Flags:        explainFlags(),
		Before:       withSettings(func(*cli.Context) error { return nil }),
		OnUsageError: onUsageError,
		Action:       e.run,
	}
	out.Aliases = aliases(e.kind)
	if e.argument == "NAMESPACE/NAME" {
		out.Flags = append(out.Flags, &cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
			Usage: "`NAMESPACE` of the " + e.noun + ", unless the name has it"})
	}
	if e.kind == "svc" {
		out.Usage = "show a service's addresses and ports, which endpoints serve and why, and its Northbound rows"
	}
	if e.noun == strings.ToLower(string(names.KindPod)) {
		out.Usage = "show the Northbound rows of a pod, which policies select it, and what they leave open"
	}
	return out
}

func explainFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{printableFlag(asText, "")}, serversOrManifestsFlags(), clusterFlags(),
		topologyFlags(), []cli.Flag{configFlag()}, logFlags("info"))
}

// isKind tells whether a kind goes by a name on the command line.
func isKind(kind, name string) bool { return name == kind || slices.Contains(aliases(kind), name) }

// aliases lists other names of a kind, most of them those that kubectl takes.
func aliases(kind string) []string {
	return map[string][]string{
		"svc": {"service"}, "namespace": {"ns"}, "node": {"no"}, "pod": {"po"}, "networkpolicy": {"np", "netpol"},
		"clusternetworkpolicy": {"cnp"}, "network": {"net-attach-def", "userdefinednetwork", "clusteruserdefinednetwork"},
	}[kind]
}

// flagsAnywhere lets a command's flags follow its arguments. The library on its own accepts them only before.
func flagsAnywhere(inner *cli.Command) *cli.Command {
	outer := *inner
	outer.SkipFlagParsing, outer.Before = true, nil
	outer.Action = func(c *cli.Context) error {
		inner.HelpName = outer.HelpName
		return runWith(c, inner, c.Args().Slice())
	}
	return &outer
}

// runWith runs a command with these arguments and flags, in any order.
func runWith(c *cli.Context, inner *cli.Command, args []string) error {
	ctx := cli.NewContext(c.App, nil, c)
	ctx.Command = inner
	return inner.Run(ctx, append([]string{inner.Name}, flagsFirst(inner.Flags, args)...)...)
}

// flagsFirst moves flags with their values before the other arguments. Arguments after "--" are no flags. A request
// for help drops all others. A missing value stays missing, so that the library reports it.
func flagsFirst(flags []cli.Flag, args []string) []string {
	var first, rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		name, _, whole := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") || name == "" {
			rest = append(rest, a)
			continue
		}
		if name == "h" || name == "help" {
			return []string{a}
		}
		first = append(first, a)
		takesValue := slices.ContainsFunc(flags, func(f cli.Flag) bool {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue() && slices.Contains(f.Names(), name)
		})
		if !takesValue || whole {
			continue
		}
		if i++; i == len(args) {
			return first
		}
		first = append(first, args[i])
	}
	return slices.Concat(first, []string{"--"}, rest)
}

// name reads the only argument, the name of an object.
func (e explainer) name(c *cli.Context) (string, error) {
	want := "want " + e.argument + " of a " + e.noun
	if c.NArg() == 0 {
		return "", usageError{fmt.Errorf("explain %s: the name is missing: %s", e.kind, want)}
	}
	given := c.Args().First()
	if n := c.String("namespace"); n != "" && e.argument == "NAMESPACE/NAME" && !strings.Contains(given, "/") {
		given = n + "/" + given
	}
	ns, name, namespaced := strings.Cut(given, "/")
	wrong := namespaced != (e.argument != "NAME") && e.argument != optionalNamespace
	if wrong || ns == "" || namespaced && name == "" || strings.Contains(name, "/") {
		return "", usageError{fmt.Errorf("explain %s: %q: %s", e.kind, given, want)}
	}
	if c.NArg() > 1 {
		return "", usageError{fmt.Errorf("explain %s: unexpected argument %q: %s, once", e.kind, c.Args().Get(1), want)}
	}
	return given, nil
}

func (e explainer) run(c *cli.Context) error {
	n, err := e.name(c)
	if err != nil {
		return err
	}
	write, err := printer(c, asText)
	if err != nil {
		return err
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	m, err := runningMaster(c, log)
	if err != nil {
		return err
	}
	if len(c.StringSlice("filename")) == 0 {
		warnTCP(c, "--nb-address", m.NB.Addresses)
		ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
		defer cancel()
		x, err := e.live(ctx, c, m, n, log)
		if err != nil {
			return err
		}
		return write(x)
	}
	objects, broken := manifests(c)
	made := offline.New(m.Cluster, objects)
	warnOfNames(c, made)
	x, err := e.explain(made.Core, n, made.Problems)
	if err == nil {
		err = write(x)
	}
	return errors.Join(broken, err)
}

// live explains an object of the cluster and compares its rows with the Northbound database.
func (e explainer) live(
	ctx context.Context, c *cli.Context, m config.Master, n string, log *slog.Logger,
) (x explanation, err error) {
	objects, problems, err := liveObjects(ctx, m.Kubernetes, log)
	if err != nil {
		return nil, err
	}
	_, err = beside(ctx, c, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		var err error
		if x, err = e.explain(want.Core, n, slices.Concat(problems, want.Problems)); err != nil {
			return err
		}
		return x.Compare(want.Core, session.View())
	})
	return x, err
}
