package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/version"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print which build this is, and which Open vSwitch and OVN this machine has",
		Description: "Of the build: version, commit, Go and platform. Of this machine: the versions of ovn-controller,\n" +
			"ovn-northd and ovs-vsctl, as far as PATH has them. The daemons that run may be of other versions until\n" +
			"they are restarted: `ovnkube doctor` asks those.",
		Flags: []cli.Flag{printableFlag(asText, "")},
		Action: func(c *cli.Context) error {
			write, err := printer(c, asText)
			if err != nil {
				return err
			}
			return write(installedVersions(c.Context))
		},
	}
}

// versions are those of the running program, and of the programs of Open vSwitch and OVN on this machine.
type versions struct {
	version.Info
	OVNController string `json:"ovnController,omitempty"`
	OVNNorthd     string `json:"ovnNorthd,omitempty"`
	OVSVsctl      string `json:"ovsVsctl,omitempty"`
}

// installedVersions asks the programs that PATH has.
func installedVersions(ctx context.Context) versions {
	of := func(program string) string {
		v, found := doctor.ProgramVersion(ctx, program)
		if !found {
			return ""
		}
		return cmp.Or(v, "unknown")
	}
	return versions{version.Get(), of("ovn-controller"), of("ovn-northd"), of("ovs-vsctl")}
}

// WriteText writes the lines of the build first, and then a line for each program.
func (v versions) WriteText(w io.Writer) error {
	if err := v.Info.WriteText(w); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range [][2]string{{"ovn-controller", v.OVNController}, {"ovn-northd", v.OVNNorthd},
		{"ovs-vsctl", v.OVSVsctl}} {
		if p[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", p[0], p[1])
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the versions of programs: %w", err)
	}
	return nil
}

// WriteJSON writes a JSON object: that of the build, and a key for each program.
func (v versions) WriteJSON(w io.Writer) error { return writeJSON(w, v) }
