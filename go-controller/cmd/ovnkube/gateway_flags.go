package main

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/selector"
)

// gatewayFlags make a node a gateway.
func gatewayFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("gateway-mode", "", "`MODE` of the gateway: shared (its router has the host's address) "+
			"(default: the node is no gateway)"),
		stringFlag("gateway-interface", "", "`NIC` in the external bridge, or the bridge itself, such as breth0; "+
			"ovnkube nics-to-bridge makes the bridge"),
		stringFlag("gateway-nexthop", "", "next hop `ADDRESS`,..., at most one per address family "+
			"(default: those of the host's default routes)"),
		gatewayVLANFlag(),
		rampoutFlag(),
		stringFlag("gateway-node-label", "", "label `SELECTOR`, such as gateway=true, that a Node must match to be a "+
			"gateway (default: every node with --gateway-mode is one)"),
	}
}

func gatewayVLANFlag() cli.Flag {
	return intFlag("gateway-vlan-id", "untagged", "VLAN `ID` of the gateway's network on the NIC")
}

func rampoutFlag() cli.Flag {
	return stringFlag("rampout-ip-subnets", "", "`CIDR`,... of pods, on any node, whose egress traffic uses this gateway")
}

// gatewayConfig reads gatewayFlags.
func gatewayConfig(c *cli.Context) (config.Gateway, error) {
	g := config.Gateway{
		Mode: c.String("gateway-mode"), Interface: c.String("gateway-interface"), VLAN: c.Int("gateway-vlan-id"),
	}
	r := listReader{Context: c}
	g.NextHops, g.Rampout = r.addrs("gateway-nexthop"), r.prefixes("rampout-ip-subnets")
	var err error
	g.NodeLabel, err = selector.ParseNode("--gateway-node-label", c.String("gateway-node-label"))
	return g, cmp.Or(r.err, err)
}
