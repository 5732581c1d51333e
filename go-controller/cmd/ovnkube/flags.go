package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// env is the environment variable that stands in for a flag.
func env(flag string) []string {
	return []string{"NORTHBOUND_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

func boolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: env(name)}
}

// kubernetesFlags say how to reach the API server.
func kubernetesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "kubeconfig `FILE`; without it and --k8s-apiserver, the pod's service account", EnvVars: append(env("kubeconfig"), "KUBECONFIG")},
		stringFlag("k8s-apiserver", "", "`URL` of the API server; no scheme means http"),
		stringFlag("k8s-cacert", "", "`FILE` with the certificate authority of --k8s-apiserver"),
		stringFlag("k8s-token", "", "bearer `TOKEN` for --k8s-apiserver"),
	}
}

// kubernetesConfig reads kubernetesFlags. KUBECONFIG in the environment is of
// no account when --k8s-apiserver is given.
func kubernetesConfig(c *cli.Context) config.Kubernetes {
	k := config.Kubernetes{Kubeconfig: c.String("kubeconfig"), APIServer: c.String("k8s-apiserver"), CACert: c.String("k8s-cacert"), Token: c.String("k8s-token")}
	if k.APIServer != "" && k.Kubeconfig == os.Getenv("KUBECONFIG") {
		k.Kubeconfig = ""
	}
	return k
}

// northboundFlags say how to reach the Northbound database.
func northboundFlags() []cli.Flag {
	d := config.DefaultMaster()
	return []cli.Flag{
		stringFlag("nb-address", strings.Join(d.NB.Addresses, ","), "Northbound database: `ADDRESS`,... of unix:/PATH, tcp:HOST:PORT, ssl:HOST:PORT; several for a Raft cluster"),
		stringFlag("nb-privkey", "", "private key `FILE` for ssl:"),
		stringFlag("nb-cert", "", "certificate `FILE` for ssl:"),
		stringFlag("nb-cacert", "", "certificate authority `FILE` for ssl:"),
	}
}

func northboundConfig(c *cli.Context) config.OVSDB {
	o := config.OVSDB{PrivKey: c.String("nb-privkey"), Cert: c.String("nb-cert"), CACert: c.String("nb-cacert")}
	for _, a := range strings.Split(c.String("nb-address"), ",") {
		if a = strings.TrimSpace(a); a != "" {
			o.Addresses = append(o.Addresses, a)
		}
	}
	return o
}

// clusterFlags are what the master and the nodes must agree on.
func clusterFlags() []cli.Flag {
	d := config.DefaultCluster()
	return []cli.Flag{
		stringFlag("cluster-subnets", config.SubnetList(d.Subnets), "`CIDR/NODE-LENGTH`,... that pods get addresses from; IPv4 and IPv6 make a dual-stack cluster"),
		stringFlag("k8s-service-cidrs", config.PrefixList(d.ServiceCIDRs), "`CIDR`,... of ClusterIPs, as the API server has them"),
	}
}

// topologyFlags shape the logical network; only the master has them.
func topologyFlags() []cli.Flag {
	d := config.DefaultCluster()
	return []cli.Flag{
		stringFlag("join-subnet", config.PrefixList(d.JoinSubnets), "`CIDR`,... of the switch between the cluster router and the gateway routers; those of unused families are ignored"),
		stringFlag("node-name", d.RouterName, "`NAME` of the cluster router, unless one tagged k8s-cluster-router=yes is there already"),
	}
}

// clusterConfig reads clusterFlags and, where the command has them,
// topologyFlags.
func clusterConfig(c *cli.Context) (config.Cluster, error) {
	d := config.DefaultCluster()
	var err error
	if d.Subnets, err = config.ParseClusterSubnets(c.String("cluster-subnets")); err != nil {
		return d, fmt.Errorf("--cluster-subnets: %w", err)
	}
	if d.ServiceCIDRs, err = config.ParsePrefixes("--k8s-service-cidrs", c.String("k8s-service-cidrs")); err != nil {
		return d, err
	}
	if join := c.String("join-subnet"); join != "" {
		if d.JoinSubnets, err = config.ParsePrefixes("--join-subnet", join); err != nil {
			return d, err
		}
	}
	if name := c.String("node-name"); name != "" {
		d.RouterName, d.RouterNamed = name, c.IsSet("node-name")
	}
	return d, nil
}

// ovsFlag names the local Open vSwitch database. Without it, it is where
// Open vSwitch's own tools look: below $OVS_RUNDIR (ovs-vsctl(8)).
func ovsFlag() cli.Flag {
	address := config.DefaultNode().OVSAddress
	if dir := os.Getenv("OVS_RUNDIR"); dir != "" {
		address = "unix:" + dir + "/db.sock"
	}
	return stringFlag("ovs-address", address, "`ADDRESS` of the local Open vSwitch database")
}

// logFlags shape the log.
func logFlags() []cli.Flag { return logFlagsAt("info") }

// quietLogFlags are those of commands that print what they do: the log is for
// what goes wrong.
func quietLogFlags() []cli.Flag { return logFlagsAt("warn") }

func logFlagsAt(level string) []cli.Flag {
	return []cli.Flag{
		stringFlag("log-level", level, "`LEVEL`: debug, info, warn, error"),
		stringFlag("log-format", "text", "`FORMAT`: text, json"),
	}
}

// newLog makes the log, and has client-go log to it too.
func newLog(c *cli.Context, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", c.String("log-level"))
	}
	h, err := logHandler(c)
	if err != nil {
		return nil, err
	}
	log := slog.New(h(w, level))
	klog.SetSlogLogger(log.With("from", "client-go"))
	return log, nil
}

// logHandler makes handlers of the form that --log-format says.
func logHandler(c *cli.Context) (func(io.Writer, slog.Level) slog.Handler, error) {
	switch f := c.String("log-format"); f {
	case "text":
		return func(w io.Writer, level slog.Level) slog.Handler {
			return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
		}, nil
	case "json":
		return func(w io.Writer, level slog.Level) slog.Handler {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
		}, nil
	default:
		return nil, fmt.Errorf("--log-format %q: want text or json", f)
	}
}
