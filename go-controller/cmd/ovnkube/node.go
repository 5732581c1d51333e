package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/agent"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// nodeCommand is `ovnkube node`.
func nodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "run the node agent: br-int, the management port, and the network of this node's pods",
		Description: "Keeps Open vSwitch and the kernel of this node as the cluster needs them, serves the CNI plugin ovn_cni,\n" +
			"and publishes what the master needs to know as annotations of the Node. It needs root, a running\n" +
			"Open vSwitch, and ovn-controller beside it. Stopping it changes nothing: pods keep their network.",
		Flags:  nodeFlags(),
		Action: runNode,
	}
}

func nodeFlags() []cli.Flag {
	d := config.DefaultNode()
	own := []cli.Flag{
		stringFlag("node-name", "", "`NAME` of this machine's Kubernetes Node"),
		stringFlag("sb-address", "", "Southbound database for ovn-controller: tcp:`HOST:PORT`,...; unset leaves external_ids:ovn-remote as it is"),
		ovsFlag(),
		stringFlag("encap-ip", "", "tunnel `ADDRESS`,... of this node; there may be several (default: what Open vSwitch has, else the Node's InternalIP)"),
		stringFlag("encap-type", d.EncapType, "tunnel `TYPE`, the same on every node: geneve, or vxlan where the network has no Geneve (it has limits, see docs/features/node.md)"),
		stringFlag("datapath-type", d.DatapathType, "`TYPE` of br-int: system (kernel module) or netdev (userspace)"),
		stringFlag("bridge-mappings", "", "physical `NETWORK:BRIDGE`,...; unset leaves external_ids:ovn-bridge-mappings as it is"),
		&cli.IntFlag{Name: "mtu", EnvVars: env("mtu"), Usage: "`BYTES` of pods and the management port (default: the tunnel interface's MTU less the tunnel's overhead)"},
		&cli.StringFlag{Name: "ovn-rundir", Value: d.OVNRunDir, Usage: "`DIR` with ovn-controller's socket", EnvVars: append(env("ovn-rundir"), "OVN_RUNDIR")},
		stringFlag("cni-conf-dir", d.CNIConfDir, "`DIR` for the CNI configuration, written when the node is ready"),
		stringFlag("cni-bin-dir", d.CNIBinDir, "`DIR` where the runtime finds CNI plugins: portmap (hostPort) is used if it is there"),
		stringFlag("cni-socket-dir", d.CNISocketDir, "`DIR` of the socket that ovn_cni talks to"),
		stringFlag("metrics-bind-address", d.Metrics, "`HOST:PORT` of /metrics, /healthz and /readyz"),
	}
	return slices.Concat(own, gatewayFlags(), clusterFlags(), kubernetesFlags(), []cli.Flag{configFlag()}, logFlags())
}

// nodeConfig reads the agent's configuration from its flags.
func nodeConfig(c *cli.Context) (config.Node, error) {
	n, err := nodeSettings(c)
	if err != nil {
		return n, err
	}
	return n, n.Validate()
}

// nodeSettings reads nodeFlags, each for itself.
func nodeSettings(c *cli.Context) (config.Node, error) {
	n := config.Node{
		Name: c.String("node-name"), OVSAddress: c.String("ovs-address"), SBAddress: c.String("sb-address"),
		EncapType: c.String("encap-type"), DatapathType: c.String("datapath-type"), MTU: c.Int("mtu"),
		OVNRunDir: c.String("ovn-rundir"), CNIConfDir: c.String("cni-conf-dir"), CNIBinDir: c.String("cni-bin-dir"), CNISocketDir: c.String("cni-socket-dir"),
		Kubernetes: kubernetesConfig(c), Metrics: c.String("metrics-bind-address"),
	}
	cluster, err := clusterConfig(c)
	if err != nil {
		return n, err
	}
	n.ClusterSubnets, n.ServiceCIDRs = cluster.Subnets, cluster.ServiceCIDRs
	if n.EncapIPs, err = config.ParseAddrs("--encap-ip", c.String("encap-ip")); err != nil {
		return n, err
	}
	if n.BridgeMappings, err = config.ParseBridgeMappings(c.String("bridge-mappings")); err != nil {
		return n, err
	}
	if n.Gateway, err = gatewayConfig(c); err != nil {
		return n, err
	}
	return n, nil
}

func runNode(c *cli.Context) error {
	conf, err := nodeConfig(c)
	if err != nil {
		return err
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	return agent.Run(c.Context, conf, log)
}
