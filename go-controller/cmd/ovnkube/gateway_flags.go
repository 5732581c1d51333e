package main

import (
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/selector"
)

// gatewayFlags make a node a gateway.
func gatewayFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("gateway-mode", "", "`MODE`: shared makes the node a gateway whose router has the host's own address; empty: the node is no gateway"),
		stringFlag("gateway-interface", "", "`NIC` in the external bridge, or the bridge itself (see ovnkube nics-to-bridge)"),
		stringFlag("gateway-nexthop", "", "`ADDRESS`,... of the next hop, one per family (default: the host's default routes')"),
		&cli.IntFlag{Name: "gateway-vlan-id", EnvVars: env("gateway-vlan-id"), Usage: "VLAN `ID` of the gateway's network on the NIC, 0 for none"},
		stringFlag("rampout-ip-subnets", "", "`CIDR`,... of pods, of whichever node, that leave through this gateway"),
		stringFlag("gateway-node-label", "", "only a node whose labels match the `SELECTOR` is a gateway, such as gateway=true"),
	}
}

// gatewayConfig reads gatewayFlags.
func gatewayConfig(c *cli.Context) (config.Gateway, error) {
	g := config.Gateway{Mode: c.String("gateway-mode"), Interface: c.String("gateway-interface"), VLAN: c.Int("gateway-vlan-id")}
	var err error
	if g.NextHops, err = config.ParseAddrs("--gateway-nexthop", c.String("gateway-nexthop")); err != nil {
		return g, err
	}
	if g.Rampout, err = config.ParsePrefixes("--rampout-ip-subnets", c.String("rampout-ip-subnets")); err != nil {
		return g, err
	}
	g.NodeLabel, err = selector.ParseNode("--gateway-node-label", c.String("gateway-node-label"))
	return g, err
}
