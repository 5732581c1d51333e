package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/release/deb"
	"github.com/northbound-net/northbound/test/release/image"
)

func debCommand() *cli.Command {
	return &cli.Command{
		Name: "deb", Usage: "write the Debian package into a file",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Value: ".", Usage: "`DIR` of the repository"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "`FILE` for the package; else northbound_VERSION_ARCHITECTURE.deb beside this program"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 0 {
				return fmt.Errorf("unexpected argument %q: want `release deb [FLAGS]`", c.Args().First())
			}
			return makeDeb(c)
		},
	}
}

func makeDeb(c *cli.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program's directory: %w", err)
	}
	programs := filepath.Join(filepath.Dir(self), "programs")
	var id image.Source
	if err := id.Identify(c.Context, filepath.Join(programs, "ovnkube"), os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	s := deb.Source{Programs: programs, Units: filepath.Join(c.String("source"), "dist/systemd"),
		License: filepath.Join(c.String("source"), "LICENSE"), Version: id.Version, Time: id.Time,
		Architecture: runtime.GOARCH} // Debian has the same names for these
	file := c.String("output")
	if file == "" {
		file = filepath.Join(filepath.Dir(self), fmt.Sprintf("northbound_%s_%s.deb", deb.Version(s.Version), s.Architecture))
	}
	if err := deb.Build(c.Context, s, file); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "package    %s\ninstall it apt install ./%s\n", file, filepath.Base(file))
	return err
}
