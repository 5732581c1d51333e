package main

import (
	"cmp"
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
	owns           names.Kind // of the rows' owners; "" where objects of several kinds are explained
	kind, argument string     // as on the command line
	noun           string     // the kind in texts
	usage          string     // "" when it is by rows alone that the kind is explained
	explain        func(c *core.Core, name string, problems []cluster.Problem) (explanation, error)
}

// Arguments for kinds with a namespace, and for those that have objects with a namespace and without.
const (
	namespaced        = "NAMESPACE/NAME"
	optionalNamespace = "[NAMESPACE/]NAME"
)

// explainers lists what explain takes, services first.
func explainers() []explainer {
	special := map[names.Kind]explainer{
		names.KindPod: {argument: namespaced, explain: explainPod,
			usage: "show the Northbound rows of a pod, which policies select it, and what they leave open"},
		names.KindPolicy:        explainPolicies(names.KindPolicy, namespaced),
		names.KindClusterPolicy: explainPolicies(names.KindClusterPolicy, "NAME"),
		names.KindMultiPolicy:   explainPolicies(names.KindMultiPolicy, namespaced),
		names.KindSelector:      {argument: "HASH"},
		names.KindExit:          {argument: "NETWORK/NODE"},
	}
	out := []explainer{{owns: names.KindService, kind: "svc", argument: namespaced, noun: "service",
		explain: explainService,
		usage:   "show a service's addresses and ports, which endpoints serve and why, and its Northbound rows"}}
	for _, k := range names.Kinds() {
		if k == names.KindService {
			continue
		}
		e := special[k]
		e.owns, e.kind = k, strings.ToLower(string(k))
		e.noun, e.argument = e.kind, cmp.Or(e.argument, "NAME")
		if e.explain == nil {
			e.explain = func(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
				return explain.OfOwner(c, nb.Owner{Kind: k, Name: name}, problems)
			}
		}
		out = append(out, e)
	}
	return append(out, explainer{kind: "network", argument: optionalNamespace, noun: "network", explain: explainNetwork})
}

func explainService(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
	return explain.OfService(c, cluster.ParseName(name), problems)
}

func explainPod(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
	return reach.OfPod(c, cluster.ParseName(name), problems)
}

func explainNetwork(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
	return explain.OfNetwork(c, cluster.ParseName(name), problems)
}

// explainPolicies explains a kind of policies.
func explainPolicies(k names.Kind, argument string) explainer {
	return explainer{argument: argument, usage: "show the Northbound rows of a " + strings.ToLower(string(k)) +
		", which pods it selects, and which its rules match",
		explain: func(c *core.Core, name string, problems []cluster.Problem) (explanation, error) {
			return reach.OfPolicy(c, k, name, problems)
		}}
}

func explainCommand() *cli.Command {
	var commands []*cli.Command
	var kinds []string
	for _, e := range explainers() {
		kinds = append(kinds, e.kind)
		commands = append(commands, flagsAnywhere(e.command()))
	}
	return &cli.Command{
		Name:  "explain",
		Usage: "explain how the network serves an object, why a row is there, or a line that an ACL logged",
		UsageText: "ovnkube explain KIND NAME\novnkube explain KIND/NAME\novnkube explain --row UUID\n" +
			"ovnkube explain --acl LINE",
		HideHelpCommand: true,
		Subcommands:     commands,
		Flags:           slices.Concat([]cli.Flag{aclFlag(), rowFlag()}, explainFlags()),
		Before: func(c *cli.Context) error {
			if c.NArg() > 0 && c.NumFlags() > 0 { // the kind's own flags would hide them
				return usageError{errors.New("explain: flags follow the kind: want KIND NAME [FLAGS], or --row or --acl alone")}
			}
			return nil
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.IsSet("acl") && c.IsSet("row"):
				return usageError{errors.New("explain: want --row or --acl, not both")}
			case c.IsSet("acl") && c.NArg() == 0:
				return explainACL(c)
			case c.IsSet("row") && c.NArg() == 0:
				return explainRow(c)
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
		Usage:     cmp.Or(e.usage, "show the Northbound rows of the "+e.noun),
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
	if e.argument == namespaced {
		out.Flags = append(out.Flags, &cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
			Usage: "`NAMESPACE` of the " + e.noun + ", unless the name has it"})
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
	wrong := namespaced != strings.Contains(e.argument, "/") && e.argument != optionalNamespace
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
	return explainWith(c, func(core *core.Core, v nb.View, problems []cluster.Problem) (printable, error) {
		return e.compared(core, v, n, problems)
	})
}

// compared explains an object, and compares its rows with the database, unless v is nil.
func (e explainer) compared(c *core.Core, v nb.View, name string, problems []cluster.Problem) (explanation, error) {
	x, err := e.explain(c, name, problems)
	if err != nil || v == nil {
		return x, err
	}
	return x, x.Compare(c, v)
}

// explaining explains something. The view is the Northbound database, nil where manifests are explained. The problems
// are those of all objects.
type explaining func(*core.Core, nb.View, []cluster.Problem) (printable, error)

// explainWith prints an explanation, of the cluster or of manifests.
func explainWith(c *cli.Context, explain explaining) error {
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
		x, err := explain.live(ctx, c, m, log)
		if err != nil {
			return err
		}
		return write(x)
	}
	objects, broken := manifests(c)
	made := offline.New(m.Cluster, objects)
	warnOfNames(c, made)
	x, err := explain(made.Core, nil, made.Problems)
	if err == nil {
		err = write(x)
	}
	return errors.Join(broken, err)
}

// live explains something in a cluster whose objects and Northbound database it reads.
func (e explaining) live(
	ctx context.Context, c *cli.Context, m config.Master, log *slog.Logger,
) (x printable, err error) {
	objects, problems, err := liveObjects(ctx, m.Kubernetes, m.Cluster.Policies, log)
	if err != nil {
		return nil, err
	}
	_, err = beside(ctx, c, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		var err error
		x, err = e(want.Core, session.View(), slices.Concat(problems, want.Problems))
		return err
	})
	return x, err
}
