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
		Usage: "by hand: make the cluster router and the join switch, and set this machine up as the first node",
		Description: "Prints what it changes, in the Northbound database and on this machine. Running it again changes nothing.\n" +
			"--undo takes everything back; it must be the last node to be undone.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("master-switch-subnet", "", "`CIDR`,... of this machine's node switch, one per address family"),
			stringFlag("join-subnet", "", "`CIDR`,... of the switch between the cluster router and the gateway routers (default: 100.64.1.0/24,fd98::/64)"),
		}, nodeInitFlags()),
		Action: func(c *cli.Context) error { return runNodeInit(c, "master-switch-subnet", true) },
	}
}

func minionInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "minion-init",
		Usage: "by hand: set this machine up as a node",
		Description: "Prints what it changes, in the Northbound database and on this machine. Running it again changes nothing.\n" +
			"--undo takes everything back.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("minion-switch-subnet", "", "`CIDR`,... of this machine's node switch, one per address family"),
		}, nodeInitFlags()),
		Action: func(c *cli.Context) error { return runNodeInit(c, "minion-switch-subnet", false) },
	}
}

func gatewayInitCommand() *cli.Command {
	return &cli.Command{
		Name:  "gateway-init",
		Usage: "by hand: make this machine, which is a node, a gateway",
		Description: "Prints what it changes, in the Northbound database and on this machine. Running it again changes nothing.\n" +
			"--undo takes everything back. A bridge that the machine shares with OVN also needs `ovnkube gateway-helper`.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("physical-interface", "", "`NIC` for OVN alone, which must have no address; or"),
			stringFlag("bridge-interface", "", "`BRIDGE` that this machine shares with OVN, as nics-to-bridge makes it"),
			stringFlag("physical-ip", "", "`ADDRESS/LENGTH`,... of this machine there, one per address family"),
			stringFlag("default-gw", "", "`ADDRESS`,... of the router to the outside, one per address family"),
			stringFlag("rampout-ip-subnets", "", "`CIDR`,... of pods, of whichever node, that leave through this gateway"),
			&cli.IntFlag{Name: "vlan-id", Usage: "VLAN `ID` of the outside network, 0 for none", EnvVars: env("vlan-id")},
		}, initFlags()),
		Action: runGatewayInit,
	}
}

// nodeInitFlags are those of master-init and minion-init.
func nodeInitFlags() []cli.Flag {
	d := config.DefaultNode()
	return slices.Concat([]cli.Flag{
		stringFlag("sb-address", "", "Southbound database for ovn-controller: tcp:`HOST:PORT`,...; unset leaves external_ids:ovn-remote as it is"),
		stringFlag("encap-ip", "", "tunnel `ADDRESS`,... of this machine (default: external_ids:ovn-encap-ip, else the address from which external_ids:ovn-remote is reached)"),
		stringFlag("encap-type", d.EncapType, "tunnel `TYPE`: geneve or vxlan"),
		&cli.IntFlag{Name: "mtu", EnvVars: env("mtu"), Usage: "`BYTES` of the management port (default: the tunnel interface's MTU less the tunnel's overhead)"},
		stringFlag("k8s-service-cidrs", config.PrefixList(d.ServiceCIDRs), "`CIDR`,... of ClusterIPs"),
	}, initFlags())
}

// initFlags are those of all commands that set up by hand.
func initFlags() []cli.Flag {
	d := config.DefaultNode()
	return slices.Concat([]cli.Flag{
		stringFlag("cluster-ip-subnet", "", "`CIDR`,... that contains all nodes' subnets, one per address family"),
		stringFlag("node-name", "", "`NAME` of this machine"),
		ovsFlag(),
		stringFlag("datapath-type", d.DatapathType, "`TYPE` of br-int: system (kernel module) or netdev (userspace)"),
		stringFlag("state-dir", "/var/lib/northbound/byhand", "`DIR` of the notes from which --undo puts back what was there"),
		boolFlag("dry-run", "print what would change, and change nothing"),
		boolFlag("undo", "take back what the command did"),
		&cli.DurationFlag{Name: "timeout", Value: time.Minute, Usage: "how long to wait for the databases and for Open vSwitch", EnvVars: env("timeout")},
	}, kubernetesFlags(), northboundFlags(), []cli.Flag{configFlag()}, quietLogFlags())
}

// setup reads what all the commands have in common. length tells the prefix
// length of a node's subnet of a family.
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
	s.Node.Name, s.Node.OVSAddress, s.Node.DatapathType = c.String("node-name"), c.String("ovs-address"), c.String("datapath-type")
	if s.Node.Name == "" {
		return s, usageError{errors.New("--node-name: the name of this machine is needed")}
	}
	// As Kubernetes wants names of Nodes (RFC 1123); it is part of a file's, too.
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`).MatchString(s.Node.Name) {
		return s, usageError{fmt.Errorf("--node-name %q: want lower case letters, digits, '-' and '.', with a letter or digit at both ends", s.Node.Name)}
	}
	if err := errors.Join(s.NB.Validate("nb"), ovsdb.Check(s.NB)); err != nil {
		return s, err
	}
	s.Cluster.Subnets = nil
	if c.Bool("undo") && c.String("cluster-ip-subnet") == "" {
		return s, nil // the cluster router tells
	}
	ranges, err := config.ParsePrefixes("--cluster-ip-subnet", c.String("cluster-ip-subnet"))
	if err != nil {
		return s, err
	}
	if len(ranges) == 0 {
		return s, usageError{errors.New("--cluster-ip-subnet: the range that contains all nodes' subnets is needed, such as 192.168.0.0/16")}
	}
	for _, r := range ranges {
		s.Cluster.Subnets = append(s.Cluster.Subnets, config.ClusterSubnet{CIDR: r, NodeLength: max(length(r.Addr().Is4()), r.Bits())})
	}
	s.Node.ClusterSubnets = s.Cluster.Subnets
	return s, nil
}

func runNodeInit(c *cli.Context, subnetFlag string, first bool) error {
	subnets, err := config.ParsePrefixes("--"+subnetFlag, c.String(subnetFlag))
	if err != nil {
		return err
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
	if s.Node.EncapIPs, err = config.ParseAddrs("--encap-ip", c.String("encap-ip")); err != nil {
		return err
	}
	if s.Node.ServiceCIDRs, err = config.ParsePrefixes("--k8s-service-cidrs", c.String("k8s-service-cidrs")); err != nil {
		return err
	}
	if first {
		s.Cluster.RouterName, s.Cluster.RouterNamed = s.Node.Name, true
		if join := c.String("join-subnet"); join != "" {
			if s.Cluster.JoinSubnets, err = config.ParsePrefixes("--join-subnet", join); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	if c.Bool("undo") {
		return s.UndoNode(ctx, first)
	}
	if len(subnets) == 0 {
		return usageError{fmt.Errorf("--%s: the subnet of this machine's pods is needed, such as 192.168.2.0/24", subnetFlag)}
	}
	s.Cluster.ServiceCIDRs = s.Node.ServiceCIDRs
	if err := errors.Join(s.Cluster.Validate(), s.Node.Validate()); err != nil {
		return err
	}
	if first {
		return s.MasterInit(ctx, subnets)
	}
	return s.MinionInit(ctx, subnets)
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
	if g.IPs, err = config.ParseInterfaceAddrs("--physical-ip", c.String("physical-ip")); err != nil {
		return err
	}
	if g.NextHops, err = config.ParseAddrs("--default-gw", c.String("default-gw")); err != nil {
		return err
	}
	if g.Rampout, err = config.ParsePrefixes("--rampout-ip-subnets", c.String("rampout-ip-subnets")); err != nil {
		return err
	}
	if err := errors.Join(g.Validate(), s.Node.Validate()); err != nil {
		return err
	}
	return s.GatewayInit(ctx, g)
}
