package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/byhand"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

func masterInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "master-init",
		Usage: "by hand: create the cluster router and the join switch, and set this machine up as the first node",
		Description: "Prints its changes to the Northbound database and to this machine. A second run changes nothing.\n" +
			"The cluster router is named like the node. --undo reverts everything; undo all other nodes first.",
		Flags:  slices.Concat([]cli.Flag{nodeSwitchFlag("master-switch-subnet")}, nodeInitFlags()),
		Action: func(c *cli.Context) error { return runNodeInit(c, "master-switch-subnet", true) },
	}
}

func minionInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "minion-init",
		Usage: "by hand: set this machine up as a node",
		Description: "Prints its changes to the Northbound database and to this machine. A second run changes nothing.\n" +
			"--undo reverts everything.",
		Flags:  slices.Concat([]cli.Flag{nodeSwitchFlag("minion-switch-subnet")}, nodeInitFlags()),
		Action: func(c *cli.Context) error { return runNodeInit(c, "minion-switch-subnet", false) },
	}
}

func nodeSwitchFlag(name string) cli.Flag {
	return stringFlag(name, "", "`CIDR`,... of this machine's pods, one per address family; required, except with --undo")
}

func gatewayInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "gateway-init",
		Usage: "by hand: make this machine, which must be a node, a gateway",
		Description: "Prints its changes to the Northbound database and to this machine. A second run changes nothing.\n" +
			"--undo reverts everything. With --bridge-interface, run `ovnkube gateway-helper` as well.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("physical-interface", "", "`NIC` for OVN alone, without addresses; excludes --bridge-interface"),
			stringFlag("bridge-interface", "", "`BRIDGE` that this machine shares with OVN, made by `ovnkube nics-to-bridge`"),
			stringFlag("physical-ip", "", "`ADDRESS/LENGTH`,... of the gateway on that NIC or bridge, one per address family"),
			stringFlag("default-gw", "", "next hop `ADDRESS`,... to the outside, one per address family"),
			rampoutFlag(),
			intFlag("vlan-id", "untagged", "VLAN `ID` of the outside network"),
		}, initFlags()),
		Action: runGatewayInit,
	}
}

// nodeInitFlags are the common flags of master-init and minion-init.
func nodeInitFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		sbFlag(),
		encapIPFlag("external_ids:ovn-encap-ip, else the address from which external_ids:ovn-remote is reached"),
		stringFlag("encap-type", config.DefaultNode().EncapType, "tunnel `TYPE`, the same on every node: geneve or vxlan"),
		mtuFlag("the management port"),
		serviceCIDRsFlag(),
		joinSubnetFlag(),
	}, initFlags())
}

// initFlags are the common flags of master-init, minion-init and gateway-init. These commands print their changes, so
// that they log only what goes wrong.
func initFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		stringFlag("cluster-ip-subnet", "", "`CIDR`,... that contains every node's subnet, one per address family; "+
			"required, except with --undo"),
		stringFlag("node-name", "", "`NAME` of this machine as a node; required"),
		ovsFlag(),
		datapathFlag(config.DefaultNode().DatapathType, "br-int", ""),
		stringFlag("state-dir", "/var/lib/northbound/byhand", "`DIR` that keeps the earlier settings for --undo"),
		dryRunFlag(),
		boolFlag("undo", "revert what the command did"),
		timeoutFlag(time.Minute, "`DURATION` to wait for the databases and for Open vSwitch"),
	}, kubernetesFlags(), northboundFlags(), []cli.Flag{configFlag()}, logFlags("warn"))
}

// setup reads initFlags. length returns the prefix length of a node's subnet in an address family.
func setup(c *cli.Context, length func(is4 bool) int) (byhand.Setup, error) {
	s := byhand.Setup{NB: northboundConfig(c), Cluster: config.DefaultCluster(), Node: config.DefaultNode(),
		StateDir: c.String("state-dir"), DryRun: c.Bool("dry-run"), Out: c.App.Writer}
	var err error
	if s.Log, err = newLog(c, c.App.ErrWriter); err != nil {
		return s, err
	}
	if k := kubernetesConfig(c); k.Kubeconfig != "" || k.APIServer != "" {
		s.Kubernetes = &k
	}
	s.Node.Name = c.String("node-name")
	s.Node.OVSAddress, s.Node.DatapathType = c.String("ovs-address"), c.String("datapath-type")
	if s.Node.Name == "" {
		return s, usageError{errors.New("--node-name: the name of this machine is needed")}
	}
	// Kubernetes' rule for names of Nodes (RFC 1123). It also makes the name safe as part of a file name.
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`).MatchString(s.Node.Name) {
		return s, usageError{fmt.Errorf("--node-name %q: want lower case letters, digits, '-' and '.', "+
			"with a letter or digit at both ends", s.Node.Name)}
	}
	if err := errors.Join(s.NB.Validate("nb"), ovsdb.Check(s.NB)); err != nil {
		return s, err
	}
	warnTCP(c, "--nb-address", s.NB.Addresses)
	warnTCP(c, "--sb-address", config.ParseRemotes(c.String("sb-address")))
	s.Cluster.Subnets = nil
	if c.Bool("undo") && c.String("cluster-ip-subnet") == "" {
		return s, nil // the cluster router records the ranges
	}
	r := listReader{Context: c}
	ranges := r.prefixes("cluster-ip-subnet")
	if r.err != nil {
		return s, r.err
	}
	if len(ranges) == 0 {
		return s, usageError{errors.New("--cluster-ip-subnet: the range that contains all nodes' subnets is needed, " +
			"such as 192.168.0.0/16")}
	}
	for _, p := range ranges {
		subnet := config.ClusterSubnet{CIDR: p, NodeLength: max(length(p.Addr().Is4()), p.Bits())}
		s.Cluster.Subnets = append(s.Cluster.Subnets, subnet)
	}
	s.Node.ClusterSubnets = s.Cluster.Subnets
	return s, nil
}

func runNodeInit(c *cli.Context, subnetFlag string, first bool) error {
	r := listReader{Context: c}
	subnets := r.prefixes(subnetFlag)
	if r.err != nil {
		return r.err
	}
	ipnet.Sort(subnets)
	s, err := setup(c, func(is4 bool) int {
		for _, p := range subnets {
			if p.Addr().Is4() == is4 {
				return p.Bits()
			}
		}
		return 0
	})
	if err != nil {
		return err
	}
	s.Node.EncapType, s.Node.MTU, s.Node.SBAddress = c.String("encap-type"), c.Int("mtu"), c.String("sb-address")
	s.Node.EncapIPs, s.Node.ServiceCIDRs = r.addrs("encap-ip"), r.prefixes("k8s-service-cidrs")
	if c.String("join-subnet") != "" {
		s.Node.JoinSubnets = r.prefixes("join-subnet")
	}
	if first {
		s.Cluster.RouterName, s.Cluster.RouterNamed = s.Node.Name, true
		s.Cluster.JoinSubnets = s.Node.JoinSubnets
	}
	if r.err != nil {
		return r.err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	if c.Bool("undo") {
		return s.UndoNode(ctx, first)
	}
	if len(subnets) == 0 {
		return usageError{fmt.Errorf("--%s: the subnet of this machine's pods is needed, such as 192.168.2.0/24",
			subnetFlag)}
	}
	s.Cluster.ServiceCIDRs = s.Node.ServiceCIDRs
	if err := errors.Join(s.Cluster.Validate(), s.Node.Validate()); err != nil {
		return err
	}
	return s.InitNode(ctx, subnets, first)
}

func runGatewayInit(c *cli.Context) error {
	s, err := setup(c, func(bool) int { return 0 })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	if c.Bool("undo") {
		return s.UndoGateway(ctx)
	}
	g := byhand.Gateway{Bridge: c.String("bridge-interface"), NIC: c.String("physical-interface"), VLAN: c.Int("vlan-id")}
	r := listReader{Context: c}
	g.IPs = readList(&r, "physical-ip", config.ParseInterfaceAddrs)
	g.NextHops, g.Rampout = r.addrs("default-gw"), r.prefixes("rampout-ip-subnets")
	if r.err != nil {
		return r.err
	}
	if err := errors.Join(g.Validate(), s.Node.Validate()); err != nil {
		return err
	}
	return s.InitGateway(ctx, g)
}
