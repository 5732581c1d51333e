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
		Description: "Reads manifests as `kubectl get -o yaml` or `-o json` writes them, and prints the Northbound\n" +
			"database that the master would make for them. Valid annotations keep their subnets and addresses;\n" +
			"nodes and pods without an annotation get new ones, as from the master. The order of the objects\n" +
			"does not matter.\n\n" +
			"Exit code 1: some objects are broken; the database for the others is printed all the same.",
		Flags: slices.Concat([]cli.Flag{
			manifestFlag("manifest `FILE`, directory (its *.yaml, *.yml and *.json files) or - for standard input; repeatable"),
			outputFlag(string(show.Text), "show (as ovn-nbctl show), json, ovsdb (a database file for ovsdb-server), "+
				"nbctl (a script), dot (a graph for graphviz)"),
			hostsFlag(),
		}, clusterFlags(), topologyFlags()),
		Action: runTranslate,
	}
}

func runTranslate(c *cli.Context) error {
	format, err := show.ParseFormat(c.String("output"))
	if err != nil {
		return usageError{err}
	}
	if len(c.StringSlice("filename")) == 0 {
		return usageError{errors.New("translate: -f is missing: want a file, a directory, or - for standard input")}
	}
	if err := adoptManifests(c, c.StringSlice("filename")); err != nil {
		return err
	}
	cfg, err := clusterConfig(c)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	objects, broken := manifests(c)
	result := offline.New(cfg, objects)
	warnOfNames(c, result)
	db, errs := result.Database()
	for _, p := range result.Problems {
		errs = append(errs, p)
	}
	errs = append(errs, show.Write(c.App.Writer, format, result.Schema, db))
	return errors.Join(append([]error{broken}, errs...)...)
}
