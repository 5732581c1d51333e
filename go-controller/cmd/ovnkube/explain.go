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
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

func explainCommand() *cli.Command {
	svc := &cli.Command{
		Name: "svc",

		Aliases:   []string{"service"},
		Usage:     "show a service's addresses and ports, which endpoints serve and why, and its Northbound rows",
		ArgsUsage: "NAMESPACE/NAME",
		Description: "Without -f, reads the service from the cluster and compares its rows with the Northbound database.\n" +
			"With -f, reads the service from manifests and asks no server.\n\n" +
			"Exit code 1: there is no such service, a server does not answer, or a manifest is broken.",
		Flags: slices.Concat([]cli.Flag{outputFlag("text", "text or json")}, serversOrManifestsFlags(), clusterFlags(),
			topologyFlags(), []cli.Flag{configFlag()}, logFlags("info")),
		Before:       withSettings(func(*cli.Context) error { return nil }),
		OnUsageError: onUsageError,
		Action:       runExplainService,
	}
	return &cli.Command{
		Name:            "explain",
		Usage:           "explain how the network serves an object: `ovnkube explain svc NAMESPACE/NAME`",
		HideHelpCommand: true,
		Subcommands:     []*cli.Command{flagsAnywhere(svc)},
		Before:          func(*cli.Context) error { return nil },
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usageError{fmt.Errorf("explain: no kind %q: want svc", c.Args().First())}
			}
			return usageError{errors.New("explain: the kind is missing: want svc NAMESPACE/NAME")}
		},
	}
}

// flagsAnywhere lets a command's flags follow its arguments. The library on its own accepts them only before.
func flagsAnywhere(inner *cli.Command) *cli.Command {
	outer := *inner
	outer.SkipFlagParsing, outer.Before = true, nil
	outer.Action = func(c *cli.Context) error {
		ctx := cli.NewContext(c.App, nil, c)
		ctx.Command, inner.HelpName = inner, outer.HelpName
		return inner.Run(ctx, append([]string{inner.Name}, flagsFirst(inner.Flags, c.Args().Slice())...)...)
	}
	return &outer
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

// serviceArgument reads the only argument, the name of a service.
func serviceArgument(c *cli.Context) (cluster.Name, error) {
	const want = "want NAMESPACE/NAME of a service"
	if c.NArg() == 0 {
		return cluster.Name{}, usageError{fmt.Errorf("explain svc: the name is missing: %s", want)}
	}
	ns, name, ok := strings.Cut(c.Args().First(), "/")
	if !ok || ns == "" || name == "" || strings.Contains(name, "/") {
		return cluster.Name{}, usageError{fmt.Errorf("explain svc: %q: %s", c.Args().First(), want)}
	}
	if c.NArg() > 1 {
		return cluster.Name{}, usageError{fmt.Errorf("explain svc: unexpected argument %q: %s, once", c.Args().Get(1), want)}
	}
	return cluster.Name{Namespace: ns, Name: name}, nil
}

func runExplainService(c *cli.Context) error {
	n, err := serviceArgument(c)
	if err != nil {
		return err
	}
	write := map[string]func(*explain.Service) error{
		"text": func(e *explain.Service) error { return e.WriteText(c.App.Writer) },
		"json": func(e *explain.Service) error { return e.WriteJSON(c.App.Writer) },
	}[c.String("output")]
	if write == nil {
		return usageError{fmt.Errorf("--output %q: want text or json", c.String("output"))}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	m, err := masterConfig(c)
	if err != nil {
		return err
	}
	if len(c.StringSlice("filename")) == 0 {
		ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
		defer cancel()
		e, err := explainLive(ctx, m, n, log)
		if err != nil {
			return err
		}
		return write(e)
	}
	objects, broken := manifests(c, c.App.ErrWriter)
	made := offline.New(m.Cluster, objects)
	e, err := explain.OfService(made.State, made.Schema, n, made.Problems)
	if err == nil {
		err = write(e)
	}
	return errors.Join(broken, err)
}

// explainLive explains a service of the cluster and compares its rows with the Northbound database.
func explainLive(ctx context.Context, m config.Master, n cluster.Name, log *slog.Logger) (*explain.Service, error) {
	objects, problems, err := liveObjects(ctx, m.Kubernetes, log)
	if err != nil {
		return nil, err
	}
	var e *explain.Service
	_, err = beside(ctx, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		var err error
		if e, err = explain.OfService(want.State, want.Schema, n, slices.Concat(problems, want.Problems)); err != nil {
			return err
		}
		return e.Compare(want.State, want.Schema, session.View())
	})
	return e, err
}
