package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/release/collect"
	"github.com/northbound-net/northbound/test/release/image"
)

func collectCommand() *cli.Command {
	return &cli.Command{
		Name: "collect", Usage: "put image, chart, package and plugins into one directory, with their checksums",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Value: ".", Usage: "`DIR` of the repository"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "`DIR` for the files; else releases/VERSION beside this program, which is replaced"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 0 {
				return fmt.Errorf("unexpected argument %q: want `release collect [FLAGS]`", c.Args().First())
			}
			return makeRelease(c)
		},
	}
}

func makeRelease(c *cli.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program's directory: %w", err)
	}
	bin := filepath.Dir(self)
	var id image.Source
	err = id.Identify(c.Context, filepath.Join(bin, "programs", "ovnkube"), os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	dir := c.String("output")
	if dir == "" {
		dir = filepath.Join(bin, "releases", id.Version)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing what an earlier build of version %s has made: %w", id.Version, err)
		}
	}
	in := func(file string) string { return filepath.Join(c.String("source"), file) }
	s := collect.Source{Bin: bin, Changelog: in("docs/changelog.md"), Alerts: in("dist/prometheus/alerts.yaml"),
		Dashboard: in("dist/grafana/northbound.json"), Version: id.Version, Architecture: runtime.GOARCH}
	names, err := s.Into(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("reading the size of a file: %w", err)
		}
		if _, err := fmt.Fprintf(c.App.Writer, "%9d KiB  %s\n", (info.Size()+1023)/1024, name); err != nil {
			return fmt.Errorf("writing what was made: %w", err)
		}
	}
	_, err = fmt.Fprintf(c.App.Writer, "in %s\ncheck it   sha256sum --check %s\n", dir, collect.Sums)
	return err
}
