package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/agent"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// nodeCommand is `ovnkube node`, the agent on every node.
func nodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "run the node agent: br-int, the management port, and the network of this node's pods",
		Description: "Configures Open vSwitch and the kernel of this node, serves the CNI plugin ovn_cni, and annotates\n" +
			"the Node with what the master needs to know. It needs root, and Open vSwitch and ovn-controller\n" +
			"running on the same machine. Stopping it changes nothing: pods keep their network.",
		Flags:  nodeFlags(),
		Action: runNode,
	}
}

func nodeFlags() []cli.Flag {
	d := config.DefaultNode()
	own := []cli.Flag{
		stringFlag("node-name", "", "`NAME` of this machine's Kubernetes Node; required"),
		sbFlag(),
		databaseServiceFlag("sb", "Southbound"),
		stringFlag("sb-privkey", "", "PEM `FILE` with ovn-controller's private key for ssl: addresses "+
			"(default: the SSL row of Open vSwitch stays as it is)"),
		stringFlag("sb-cert", "", "PEM `FILE` with ovn-controller's certificate, whose common name is the system-id"),
		stringFlag("sb-cacert", "", "PEM `FILE` with the CA certificate of the Southbound database"),
		insecureFlag(),
		ovsFlag(),
		stringFlag("system-id", "", "chassis `NAME` of this machine (default: external_ids:system-id, else one made of the "+
			"Node's name)"),
		encapIPFlag("external_ids:ovn-encap-ip, else the Node's InternalIP"),
		stringFlag("encap-type", d.EncapType, "tunnel `TYPE`, the same on every node: geneve, or vxlan if the physical "+
			"network cannot carry Geneve (for its limits see docs/features/node.md)"),
		datapathFlag(d.DatapathType, "br-int", ""),
		stringFlag("bridge-mappings", "", "physical network and external bridge, `NETWORK:BRIDGE`,... "+
			"(default: external_ids:ovn-bridge-mappings stays as it is)"),
		mtuFlag("pod interfaces and the management port"),
		&cli.StringFlag{Name: "ovn-rundir", Value: d.OVNRunDir, Usage: "`DIR` of ovn-controller's control socket",
			EnvVars: append(env("ovn-rundir"), "OVN_RUNDIR")},
		stringFlag("cni-conf-dir", d.CNIConfDir, "`DIR` for the CNI configuration, which is written when the node is ready"),
		stringFlag("cni-bin-dir", d.CNIBinDir, "`DIR` of the runtime's CNI plugins; hostPort needs portmap there"),
		stringFlag("cni-socket-dir", d.CNISocketDir, "`DIR` of the socket that ovn_cni connects to"),
		metricsFlag(d.Metrics),
	}
	return slices.Concat(own, gatewayFlags(), clusterFlags(), kubernetesFlags(), []cli.Flag{configFlag()},
		logFlags("info"))
}

func metricsFlag(address string) cli.Flag {
	return stringFlag("metrics-bind-address", address, "`HOST:PORT` to serve /metrics, /healthz and /readyz on")
}

func sbFlag() cli.Flag {
	return stringFlag("sb-address", "", "`ADDRESS`,... of the Southbound database for ovn-controller, such as "+
		"ssl:HOST:PORT (default: external_ids:ovn-remote stays as it is)")
}

func encapIPFlag(otherwise string) cli.Flag {
	return stringFlag("encap-ip", "", "tunnel `ADDRESS`,... of this machine (default: "+otherwise+")")
}

// datapathFlag chooses the datapath of bridges. otherwise describes the default where it is not a constant.
func datapathFlag(value, bridges, otherwise string) cli.Flag {
	f := stringFlag("datapath-type", value, "datapath `TYPE` of "+bridges+": system (kernel module) or netdev (userspace)")
	f.DefaultText = otherwise
	return f
}

func mtuFlag(interfaces string) cli.Flag {
	return intFlag("mtu", "the tunnel interface's MTU less the tunnel overhead", "MTU of "+interfaces+" in `BYTES`")
}

// nodeSettings reads nodeFlags without checking that they fit together.
func nodeSettings(c *cli.Context) (config.Node, error) {
	n := config.Node{
		Name: c.String("node-name"), OVSAddress: c.String("ovs-address"), SBAddress: c.String("sb-address"),
		SystemID: c.String("system-id"), SBKeys: keysConfig(c, "sb"), AllowTCP: c.Bool(insecureFlagName),
		EncapType: c.String("encap-type"), DatapathType: c.String("datapath-type"), MTU: c.Int("mtu"),
		OVNRunDir: c.String("ovn-rundir"), CNIConfDir: c.String("cni-conf-dir"), CNIBinDir: c.String("cni-bin-dir"),
		CNISocketDir: c.String("cni-socket-dir"), Kubernetes: kubernetesConfig(c), Metrics: c.String("metrics-bind-address"),
	}
	cluster, err := clusterConfig(c)
	if err != nil {
		return n, err
	}
	n.ClusterSubnets, n.ServiceCIDRs, n.JoinSubnets = cluster.Subnets, cluster.ServiceCIDRs, cluster.JoinSubnets
	n.Services = cluster.Services
	r := listReader{Context: c}
	n.EncapIPs = r.addrs("encap-ip")
	n.BridgeMappings, err = config.ParseBridgeMappings(c.String("bridge-mappings"))
	if err := cmp.Or(r.err, err); err != nil {
		return n, err
	}
	n.Gateway, err = gatewayConfig(c)
	return n, err
}

func runNode(c *cli.Context) error {
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	// What is wrong with the flags is said before the agent waits for a server.
	conf, err := nodeSettings(c)
	if err := errors.Join(err, conf.Validate()); err != nil {
		return err
	}
	if err := config.RefuseTCP("--sb-address", conf.SBAddresses()); err != nil && !conf.AllowTCP {
		return err
	}
	clients, err := client.New(conf.Kubernetes, "ovnkube-node")
	if err != nil {
		return err
	}
	sb, err := findServers(c, "sb", true, log)
	if err != nil {
		return err
	}
	found, err := awaitPublished(c, clients, log)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for flag := range conf.Settings() {
		given[flag] = c.IsSet(flag)
	}
	if conf, err = agentSettings(c, found); err != nil {
		return err
	}
	if err := conf.Validate(); err != nil {
		return err
	}
	f := follower{own: conf.Settings(), before: found, log: log,
		given: func(flag string) bool { return given[flag] },
		read:  func(ctx context.Context) (config.Settings, error) { return readPublished(ctx, clients) }}
	watchers := []func(context.Context, time.Duration) error{f.run}
	if sb != nil {
		watchers = append(watchers, sb.follow)
	}
	return runUntilOutdated(c.Context, func(ctx context.Context) error { return agent.Run(ctx, conf, log) }, watchers...)
}
