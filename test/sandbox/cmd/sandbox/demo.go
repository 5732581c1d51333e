package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/demo"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "bring up a cluster of three nodes and show that its network works",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "examples", Usage: "`DIR` of manifests to apply (default: docs/examples of the repository)"},
			&cli.BoolFlag{Name: "keep", Usage: "leave the cluster up; so does DEMO=keep in the environment"},
			installFlag(), ovnFlag(),
		},
		Before: noArgs, Action: runDemo,
	}
}

func runDemo(c *cli.Context) error {
	name := c.String("name")
	if !c.IsSet("name") {
		name = "demo"
	}
	start := time.Now()
	cluster, err := sandbox.Up(c.Context, sandbox.Options{
		Name: name, StateRoot: c.String("dir"), DualStack: true, OVN: c.String("ovn"), Install: c.String("install"),
		Replace: true, Progress: c.App.Writer,
	})
	if err != nil {
		return err
	}
	examples := c.String("examples")
	if examples == "" {
		examples = filepath.Join(filepath.Dir(cluster.Options.BinDir), "docs/examples")
	}
	d := &demo.Demo{Cluster: cluster, Examples: examples, Out: c.App.Writer}
	err = d.Run(c.Context)
	fmt.Fprintf(c.App.Writer, "\n%.1f s in all.\n", time.Since(start).Seconds())
	if c.Bool("keep") || os.Getenv("DEMO") == "keep" {
		fmt.Fprint(c.App.Writer, around(name))
		return err
	}
	fmt.Fprintln(c.App.Writer, "Removing the cluster; `DEMO=keep make demo` leaves it up to look around in.")
	down, cancel := context.WithTimeout(context.WithoutCancel(c.Context), time.Minute)
	defer cancel()
	return errors.Join(err, cluster.Down(down))
}

// around says how to look around in a cluster.
func around(name string) string {
	sandbox := "bin/sandbox --name " + name
	return fmt.Sprintf(`The cluster is up. Some things to try:
  %[1]s kubectl get pods -A -o wide
  %[1]s exec POD -- sh
  %[1]s nbctl show
  %[1]s sbctl show
  %[1]s node 1 -- ovs-vsctl show
  %[1]s logs master
  %[1]s status
and when you are done:
  %[1]s down
`, sandbox)
}
