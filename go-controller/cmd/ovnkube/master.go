package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/master"
)

func masterCommand() *cli.Command {
	d := config.DefaultMaster()
	return &cli.Command{
		Name:  "master",
		Usage: "watch the cluster and keep the Northbound database equal to what it wants",
		Flags: slices.Concat(kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), []cli.Flag{
			stringFlag("metrics-bind-address", d.Metrics, "`HOST:PORT` of /metrics, /healthz and /readyz"),
			boolFlag("verify", "compare with a full translation whenever there is nothing else to do; a difference is an error in the log and in northbound_verify_differences_total"),
			boolFlag("leader-elect", "run several masters, of which the holder of a Lease works"),
			stringFlag("leader-elect-namespace", d.LeaderElect.Namespace, "`NAMESPACE` of the Lease"),
			&cli.DurationFlag{Name: "leader-elect-lease", Value: d.LeaderElect.Lease, Usage: "how long a leader that fell silent keeps the Lease", EnvVars: env("leader-elect-lease")},
			boolFlag("dry-run", "change nothing: print what would change, as the plan command does, and exit with 0 (nothing), 2 (changes) or 1 (an error)"),
		}, planFlags(), []cli.Flag{configFlag()}, logFlags()),
		Action: runMaster,
	}
}

func runMaster(c *cli.Context) error {
	if c.Bool("dry-run") {
		return runPlan(c)
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	m, err := masterConfig(c)
	if err != nil {
		return err
	}
	return master.Run(c.Context, m, log, nil)
}

// masterConfig reads the master's configuration: kubernetesFlags,
// northboundFlags, clusterFlags and topologyFlags, and of the others those that
// the command has.
func masterConfig(c *cli.Context) (config.Master, error) {
	m := config.DefaultMaster()
	m.Kubernetes, m.NB = kubernetesConfig(c), northboundConfig(c)
	var err error
	if m.Cluster, err = clusterConfig(c); err != nil {
		return m, err
	}
	if hasFlag(c.Command, "metrics-bind-address") {
		m.Metrics = c.String("metrics-bind-address")
	}
	if hasFlag(c.Command, "leader-elect") {
		m.LeaderElect.Enabled, m.LeaderElect.Namespace = c.Bool("leader-elect"), c.String("leader-elect-namespace")
		m.LeaderElect.Lease = c.Duration("leader-elect-lease").Round(time.Millisecond)
		m.Verify = c.Bool("verify")
	}
	return m, m.Validate()
}
