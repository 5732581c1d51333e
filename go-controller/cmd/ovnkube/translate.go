package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
)

func translateCommand() *cli.Command {
	return &cli.Command{
		Name:  "translate",
		Usage: "print the Northbound database for Kubernetes manifests, with no server",
		Description: "Reads manifests as `kubectl get -o yaml` or `-o json` writes them and prints the Northbound database that the\n" +
			"master makes of them. Annotations hold where they are valid; nodes and pods without one get subnets and\n" +
			"addresses as from the master. The same objects give the same bytes, whatever their order.\n\n" +
			"Exit code 1 if anything was broken; the rest is printed all the same.",
		Flags: slices.Concat([]cli.Flag{
			manifestFlag("`FILE`, directory (*.yaml, *.yml, *.json below it) or - for standard input; may be given again"),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: string(show.Text), Usage: "`FORMAT`: " +
				"show (as ovn-nbctl show), json, ovsdb (a database file for ovsdb-server), nbctl (a script), dot (a graph for graphviz)"},
		}, clusterFlags(), topologyFlags()),
		Action: runTranslate,
	}
}

func runTranslate(c *cli.Context) error {
	format, err := show.ParseFormat(c.String("output"))
	if err != nil {
		return usageError{err}
	}
	if err := noArguments(c); err != nil {
		return err
	}
	if len(c.StringSlice("filename")) == 0 {
		return usageError{errors.New("translate: -f is missing: want a file, a directory, or - for standard input")}
	}
	cfg, err := clusterConfig(c)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	objects, broken := manifests(c, c.App.ErrWriter)
	result := offline.New(cfg, objects)
	db, errs := result.Database()
	for _, p := range result.Problems {
		errs = append(errs, p)
	}
	errs = append(errs, show.Write(c.App.Writer, format, result.Schema, db))
	return errors.Join(append([]error{broken}, errs...)...)
}
