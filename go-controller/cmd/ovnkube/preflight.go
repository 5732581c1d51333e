package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/preflight"
)

// preflightCommand is `ovnkube preflight`.
func preflightCommand() *cli.Command {
	return &cli.Command{
		Name:  "preflight",
		Usage: "examine a machine before the installation: print what is missing or in the way, and what to type",
		Description: "It changes nothing, and needs root. Give it the flags or environment that `ovnkube node` is to\n" +
			"have. These decide: --datapath-type, --encap-type, --encap-ip, --mtu, --cluster-subnets and --cni-conf-dir.\n\n" +
			"Exit code 0: no problem; 2: problems; 1: an error kept it from running.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("role", roleNode, "`ROLE` of the machine: node, central (databases and master) or all"),
			boolFlag("in-pods", "the chart is to bring Open vSwitch and OVN in pods: want none of their programs, and no "+
				"running Open vSwitch"),
			printableFlag(asText, ""),
			timeoutFlag(5*time.Second, "`DURATION` that the API server may take to answer"),
		}, nodeFlags()),
		Action: runPreflight,
	}
}

// The roles of a machine.
const (
	roleNode    = "node"
	roleCentral = "central"
	roleAll     = "all"
)

// preflightConfig reads the flags of preflightCommand.
func preflightConfig(c *cli.Context) (preflight.Config, error) {
	n, err := nodeSettings(c)
	if err != nil {
		return preflight.Config{}, err
	}
	role := c.String("role")
	if !slices.Contains([]string{roleNode, roleCentral, roleAll}, role) {
		return preflight.Config{}, usageError{fmt.Errorf("--role %q: want node, central or all", role)}
	}
	k := n.Kubernetes
	p := preflight.Config{Node: n, Worker: role != roleCentral, Central: role != roleNode,
		Timeout: c.Duration("timeout"), InPods: c.Bool("in-pods"),
		Kubernetes: k.Kubeconfig+k.APIServer+os.Getenv("KUBERNETES_SERVICE_HOST") != ""}
	n.Name = cmp.Or(n.Name, "unknown") // only for Validate: nothing here depends on it
	return p, n.Validate()
}

func runPreflight(c *cli.Context) error {
	write, badOutput := printer(c, asText)
	conf, err := preflightConfig(c)
	if err := errors.Join(badOutput, err); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("preflight reads nftables: run it as root")
	}
	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the machine's name: %w", err)
	}
	diagnosis := preflight.Examine(conf, preflight.Read(c.Context, conf), machine)
	if err := write(diagnosis); err != nil {
		return err
	}
	return exitWith(diagnosis)
}

// exitWith is an error with an exit code if there are problems.
func exitWith(d doctor.Diagnosis) error {
	if d.Problems > 0 {
		return cli.Exit("", exitProblems)
	}
	return nil
}
