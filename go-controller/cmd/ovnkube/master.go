package main

import (
	"context"
	"log/slog"
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
		Usage: "run the master: watch the cluster and keep the Northbound database up to date",
		Flags: slices.Concat(kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), []cli.Flag{
			metricsFlag(d.Metrics),
			boolFlag("verify", "when idle, compare the database with a full translation; "+
				"log differences as errors and count them in northbound_verify_differences_total"),
			&cli.DurationFlag{Name: "ovn-latency-interval", EnvVars: env("ovn-latency-interval"), DefaultText: "never",
				Usage: "measure every `DURATION` how long OVN takes to follow a change, for northbound_ovn_latency_seconds"},
			&cli.BoolFlag{Name: "leader-elect", Value: d.LeaderElect.Enabled, EnvVars: env("leader-elect"),
				Usage: "elect a leader among several masters with a Lease; the others stand by"},
			stringFlag("leader-elect-namespace", d.LeaderElect.Namespace, "`NAMESPACE` of the Lease"),
			durationFlag("leader-elect-lease", d.LeaderElect.Lease, "`DURATION` for which a leader that stops "+
				"renewing the Lease still holds it, at least 3s"),
			boolFlag("adopt", "take over a Northbound database that is recorded for another cluster; look at ovnkube plan "+
				"first"),
			stringFlag("policy-dns-servers", "", "`SERVERS` of DNS that resolve the domainNames of policies, separated by "+
				"commas, such as 192.0.2.53 or [2001:db8::53]:53 (default: those of /etc/resolv.conf)"),
			durationFlag("policy-dns-grace", d.DomainNames.Grace, "`DURATION` for which policies go on to accept an address "+
				"that DNS has no longer for a name, at most 24h"),
			conntrackFlag(), insecureFlag(),
			intFlag("mtu", "each agent's own", "MTU of pods and management ports on all nodes in `BYTES`; agents take it over"),
			stringFlag("encap-type", "", "tunnel `TYPE` of all nodes, geneve or vxlan; agents take it over "+
				"(default: each agent's own)"),
			boolFlag("dry-run", "print what would change, as ovnkube plan does, and change nothing; "+
				"exit code 0: nothing to do, 2: changes, 1: an error"),
			timeoutFlag(planTimeout, "`DURATION` that --dry-run may take"),
		}, []cli.Flag{configFlag()}, logFlags("info")),
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
	nb, err := findServers(c, "nb", true, log)
	if err != nil {
		return err
	}
	m, err := masterConfig(c)
	if err != nil {
		return err
	}
	run := func(ctx context.Context) error { return master.Run(ctx, m, log, nil) }
	if nb == nil {
		return run(c.Context)
	}
	return runUntilOutdated(c.Context, run, nb.follow)
}

// masterConfig reads the master's configuration from the flags that the command has. Every command that calls it
// has kubernetesFlags, northboundFlags, clusterFlags and topologyFlags.
func masterConfig(c *cli.Context) (config.Master, error) {
	m := config.DefaultMaster()
	if len(c.StringSlice("filename")) == 0 {
		if _, err := findServers(c, "nb", false, slog.New(slog.DiscardHandler)); err != nil {
			return m, err
		}
	}
	m.Kubernetes, m.NB = kubernetesConfig(c), northboundConfig(c)
	var err error
	if m.Cluster, err = clusterConfig(c); err != nil {
		return m, err
	}
	if hasFlag(c.Command, "encap-type") {
		m.Cluster.Tunnels = config.Tunnels{EncapType: c.String("encap-type"), MTU: c.Int("mtu")}
	}
	m.AllowTCP, m.ACLConntrack = c.Bool(insecureFlagName), c.Bool("acl-ct-translation")
	if hasFlag(c.Command, "metrics-bind-address") {
		m.Metrics = c.String("metrics-bind-address")
	}
	if hasFlag(c.Command, "leader-elect") {
		m.LeaderElect.Enabled, m.LeaderElect.Namespace = c.Bool("leader-elect"), c.String("leader-elect-namespace")
		m.LeaderElect.Lease = c.Duration("leader-elect-lease").Round(time.Millisecond)
		m.Verify, m.Adopt, m.OVNLatency = c.Bool("verify"), c.Bool("adopt"), c.Duration("ovn-latency-interval")
		m.DomainNames.Grace = c.Duration("policy-dns-grace")
		if m.DomainNames.Servers, err = config.ParseDNSServers(c.String("policy-dns-servers")); err != nil {
			return m, err
		}
	}
	return m, m.Validate()
}
