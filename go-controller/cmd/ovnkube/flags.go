package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// env names the environment variable that a flag is read from when the command line does not set it.
func env(flag string) []string {
	return []string{"NORTHBOUND_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

func boolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: env(name)}
}

// intFlag makes a flag whose help says that its default is what 0 stands for.
func intFlag(name, zero, usage string) *cli.IntFlag {
	return &cli.IntFlag{Name: name, DefaultText: zero, Usage: usage, EnvVars: env(name)}
}

// durationFlag makes a flag that refuses durations which are not positive.
func durationFlag(name string, value time.Duration, usage string) *cli.DurationFlag {
	return &cli.DurationFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name),
		Action: func(_ *cli.Context, d time.Duration) error {
			if d <= 0 {
				return usageError{fmt.Errorf("--%s %s: want a duration such as %s", name, d, value)}
			}
			return nil
		}}
}

// kubernetesFlags say how to reach the API server.
func kubernetesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", EnvVars: append(env("kubeconfig"), "KUBECONFIG"),
			Usage: "kubeconfig `FILE`, instead of --k8s-apiserver; in a pod, neither is needed"},
		stringFlag("k8s-apiserver", "", "`URL` of the API server; without a scheme, http:// is assumed"),
		stringFlag("k8s-cacert", "", "PEM `FILE` with the CA certificate of --k8s-apiserver"),
		stringFlag("k8s-token", "", "bearer `TOKEN` for --k8s-apiserver"),
		stringFlag("k8s-server-from", "", "kubeconfig `FILE` from which a pod reads the API server's address, such as the "+
			"kubelet's; the pod's token comes from its service account"),
	}
}

// kubernetesConfig reads kubernetesFlags. It ignores the environment's KUBECONFIG if --k8s-apiserver is given.
func kubernetesConfig(c *cli.Context) config.Kubernetes {
	k := config.Kubernetes{Kubeconfig: c.String("kubeconfig"), APIServer: c.String("k8s-apiserver"),
		CACert: c.String("k8s-cacert"), Token: c.String("k8s-token"), ServerFrom: c.String("k8s-server-from")}
	if k.APIServer != "" && k.Kubeconfig == os.Getenv("KUBECONFIG") {
		k.Kubeconfig = ""
	}
	return k
}

// northboundFlags say how to reach the Northbound database.
func northboundFlags() []cli.Flag {
	d := config.DefaultMaster()
	return []cli.Flag{
		stringFlag("nb-address", strings.Join(d.NB.Addresses, ","), "`ADDRESS`,... of the Northbound database: "+
			"unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT; give every server of a Raft cluster"),
		databaseServiceFlag("nb", "Northbound"),
		stringFlag("nb-privkey", "", "PEM `FILE` with the private key for ssl: addresses"),
		stringFlag("nb-cert", "", "PEM `FILE` with the certificate for ssl: addresses"),
		stringFlag("nb-cacert", "", "PEM `FILE` with the CA certificate for ssl: addresses"),
	}
}

// keysConfig reads the flags with the PEM files of a database, "nb" or "sb".
func keysConfig(c *cli.Context, db string) config.Keys {
	return config.Keys{PrivKey: c.String(db + "-privkey"), Cert: c.String(db + "-cert"), CACert: c.String(db + "-cacert")}
}

func northboundConfig(c *cli.Context) config.OVSDB {
	return config.OVSDB{Addresses: config.ParseRemotes(c.String("nb-address")), Keys: keysConfig(c, "nb")}
}

// clusterFlags are the settings that must be the same on the master and on every node.
func clusterFlags() []cli.Flag {
	d := config.DefaultCluster()
	return []cli.Flag{
		stringFlag("cluster-subnets", config.SubnetList(d.Subnets), "`CIDR/NODE-LENGTH`,... of pod addresses, "+
			"and the length of the subnet that each node gets; IPv4 and IPv6 ranges make a dual-stack cluster"),
		serviceCIDRsFlag(),
		joinSubnetFlag(),
		stringFlag("external-ip-cidrs", "", "`CIDR`,... that externalIPs and load balancer IPs of Services must be in "+
			"(default: any address that is nobody else's)"),
		limitFlag("max-service-vips", d.Services.MaxVIPs, "`N` addresses x ports of a Service at most; "+
			"0: no limit"),
		limitFlag("max-namespace-vips", d.Services.MaxNamespaceVIPs, "`N` addresses x ports of all Services of a "+
			"namespace at most; 0: no limit"),
		limitFlag("max-service-endpoints", d.Services.MaxEndpoints, "`N` endpoints of a Service and address family at "+
			"most, and fewer for a Service of more than 10 addresses x ports; 0: no limit"),
	}
}

func limitFlag(name string, value int, usage string) cli.Flag {
	return &cli.IntFlag{Name: name, Value: value, Usage: usage, EnvVars: env(name)}
}

func serviceCIDRsFlag() cli.Flag {
	return stringFlag("k8s-service-cidrs", config.PrefixList(config.DefaultCluster().ServiceCIDRs),
		"`CIDR`,... of ClusterIPs, the same as the API server's --service-cluster-ip-range")
}

// topologyFlags shape the logical network. Only the master needs them.
func topologyFlags() []cli.Flag {
	router := stringFlag("router-name", config.DefaultCluster().RouterName, "`NAME` of the cluster router; "+
		"unless this is given, a router that is tagged k8s-cluster-router=yes keeps its name")
	router.Aliases = []string{"node-name"} // the classic name of this flag
	return append([]cli.Flag{router,
		stringFlag("gateway-cidrs", "", "`CIDR`,... of outside addresses that gateways may have although their Nodes do not "+
			"report them (status.addresses)"),
		stringFlag("gateway-pin-cidrs", "", "`CIDR`,... of pods that a gateway on any node may name in --rampout-ip-subnets "+
			"(default: each gateway those of its own node)"),
		stringFlag("physical-networks", "", "`NAME[:VLAN[-VLAN]]`,... of networks outside that pods' networks of topology "+
			"localnet may join, by their names in ovn-bridge-mappings; a NAME alone is for frames without a tag, "+
			"NAME:0-4094 for all (default: none)"),
		boolFlag("multitenant", "keep pods of different tenants apart: each namespace is one, unless annotations say "+
			"something else"),
		limitFlag("acl-log-rate", config.DefaultCluster().ACLLogRate, "`N` lines a second at most that an ACL logs on a "+
			"node; 0: no limit"),
		limitFlag("max-pod-connections", config.DefaultCluster().MaxPodConnections, "`N` connections at most that are "+
			"tracked for an interface of a pod at a time (OVN 24.09 and Open vSwitch 3.3 or later); 0: no limit"),
	}, policyLimitFlags()...)
}

// policyLimitFlags bound what one policy may name, and all of a namespace.
func policyLimitFlags() []cli.Flag {
	d := config.DefaultPolicies()
	return []cli.Flag{
		limitFlag("max-policy-rules", d.MaxRules, "`N` rules of a NetworkPolicy at most; 0: no limit"),
		limitFlag("max-policy-selectors", d.MaxSelectors, "`N` selectors of peers that a policy names at most; "+
			"0: no limit"),
		limitFlag("max-policy-ranges", d.MaxRanges, "`N` ranges of addresses that a policy names at most, without its "+
			"exceptions; 0: no limit"),
		limitFlag("max-policy-ports", d.MaxPorts, "`N` ports and ranges of ports that a policy names at most; "+
			"0: no limit"),
		limitFlag("max-namespace-policy-selectors", d.MaxNamespaceSelectors, "`N` selectors of peers at most that all "+
			"NetworkPolicies of a namespace name; 0: no limit"),
		limitFlag("max-namespace-policy-terms", d.MaxNamespaceTerms, "`N` rules, peers, ranges of addresses and ports at "+
			"most that all NetworkPolicies of a namespace name; 0: no limit"),
	}
}

// policyLimits reads policyLimitFlags.
func policyLimits(c *cli.Context) config.Policies {
	return config.Policies{MaxRules: c.Int("max-policy-rules"), MaxSelectors: c.Int("max-policy-selectors"),
		MaxRanges: c.Int("max-policy-ranges"), MaxPorts: c.Int("max-policy-ports"),
		MaxNamespaceSelectors: c.Int("max-namespace-policy-selectors"),
		MaxNamespaceTerms:     c.Int("max-namespace-policy-terms")}
}

// conntrackFlag is for the programs that write to the Northbound database as long as they run: it shapes no row.
func conntrackFlag() cli.Flag {
	return boolFlag("acl-ct-translation", "with the userspace datapath, let rules of policies that name ports match "+
		"fragments: sets this option of NB_Global (OVN 25.03.3 or later); NICs may offload less, and multicast costs more")
}

func joinSubnetFlag() cli.Flag {
	return stringFlag("join-subnet", config.PrefixList(config.DefaultCluster().JoinSubnets), "`CIDR`,... of the switch "+
		"that joins the cluster router and the gateway routers; a family that pods do not use is ignored")
}

// listReader reads flags with comma-separated lists. It keeps the first error.
type listReader struct {
	*cli.Context
	err error
}

func readList[T any](r *listReader, flag string, parse func(what, s string) ([]T, error)) []T {
	list, err := parse("--"+flag, r.String(flag))
	r.err = cmp.Or(r.err, err)
	return list
}

func (r *listReader) prefixes(flag string) []netip.Prefix {
	return readList(r, flag, config.ParsePrefixes)
}
func (r *listReader) addrs(flag string) []netip.Addr { return readList(r, flag, config.ParseAddrs) }

// clusterConfig reads clusterFlags, and topologyFlags where the command has them.
func clusterConfig(c *cli.Context) (config.Cluster, error) {
	d, r := config.DefaultCluster(), listReader{Context: c}
	var err error
	if d.Subnets, err = config.ParseClusterSubnets(c.String("cluster-subnets")); err != nil {
		return d, fmt.Errorf("--cluster-subnets: %w", err)
	}
	d.ServiceCIDRs = r.prefixes("k8s-service-cidrs")
	d.Services = config.Services{MaxVIPs: c.Int("max-service-vips"), MaxNamespaceVIPs: c.Int("max-namespace-vips"),
		MaxEndpoints: c.Int("max-service-endpoints"), ExternalCIDRs: r.prefixes("external-ip-cidrs")}
	if c.String("join-subnet") != "" {
		d.JoinSubnets = r.prefixes("join-subnet")
	}
	d.Claims = config.Claims{GatewayCIDRs: r.prefixes("gateway-cidrs"), PinCIDRs: r.prefixes("gateway-pin-cidrs")}
	d.PhysicalNetworks = readList(&r, "physical-networks", config.ParsePhysicalNetworks)
	d.Multitenant = c.Bool("multitenant")
	d.ACLLogRate, d.MaxPodConnections = c.Int("acl-log-rate"), c.Int("max-pod-connections")
	d.Policies = policyLimits(c)
	if name := c.String("router-name"); name != "" {
		d.RouterName, d.RouterNamed = name, c.IsSet("router-name")
	}
	return d, r.err
}

// ovsFlag names the local Open vSwitch database. The default is where Open vSwitch's own tools look for it:
// below $OVS_RUNDIR (ovs-vsctl(8)).
func ovsFlag() cli.Flag {
	address := config.DefaultNode().OVSAddress
	if dir := os.Getenv("OVS_RUNDIR"); dir != "" {
		address = "unix:" + dir + "/db.sock"
	}
	return stringFlag("ovs-address", address, "`ADDRESS` of the local Open vSwitch database: unix:PATH or tcp:HOST:PORT")
}

// logFlags configure the log. level is the default of --log-level.
func logFlags(level string) []cli.Flag {
	return []cli.Flag{
		stringFlag("log-level", level, "least severe `LEVEL` to log: debug, info, warn or error"),
		logFormatFlag(),
	}
}

func logFormatFlag() cli.Flag {
	return stringFlag("log-format", "text", "`FORMAT` of the log: text or json")
}

// newLog makes the log that the command and client-go write to.
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

// logHandler returns the constructor of handlers for --log-format.
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
