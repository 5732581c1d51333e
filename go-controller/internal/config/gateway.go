package config

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// NodeSelector selects Nodes by their labels. Package kube/selector parses one from a Kubernetes label selector, which
// String returns.
type NodeSelector interface {
	fmt.Stringer
	Accepts(labels map[string]string) bool
}

// Gateway configures a node as a gateway. The zero Gateway means that the node is none.
type Gateway struct {
	Mode      string         // annotation.GatewayShared, or "" for none
	Interface string         // the NIC, or the bridge that has it
	NextHops  []netip.Addr   // at most one per family; empty: those of the default routes
	VLAN      int            // VLAN id on the NIC, 0 for none
	Rampout   []netip.Prefix // ranges of pods, on any node, whose egress traffic uses this gateway
	NodeLabel NodeSelector   // the node is a gateway only if this accepts it; nil accepts every node
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (g Gateway) Validate() error {
	var errs []error
	switch g.Mode {
	case annotation.GatewayShared:
		if g.Interface == "" {
			errs = append(errs, errors.New("--gateway-interface: the NIC, or the bridge that has it, is needed with "+
				"--gateway-mode shared, such as breth0"))
		}
	case "":
		for flag, given := range map[string]bool{
			"--gateway-interface": g.Interface != "", "--gateway-nexthop": len(g.NextHops) > 0, "--gateway-vlan-id": g.VLAN != 0,
			"--rampout-ip-subnets": len(g.Rampout) > 0, "--gateway-node-label": g.NodeLabel != nil,
		} {
			if given {
				errs = append(errs, fmt.Errorf("%s: needs --gateway-mode shared", flag))
			}
		}
	default:
		errs = append(errs, fmt.Errorf("--gateway-mode %q: want %q, or nothing for a node that is no gateway",
			g.Mode, annotation.GatewayShared))
	}
	if g.VLAN < 0 || g.VLAN > LastVLAN {
		errs = append(errs, fmt.Errorf("--gateway-vlan-id %d: want 1 to %d, or 0 for none", g.VLAN, LastVLAN))
	}
	seen := map[bool]bool{}
	for _, a := range g.NextHops {
		if seen[a.Is4()] || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() {
			errs = append(errs, fmt.Errorf("--gateway-nexthop %s: want at most one router's address of each family, "+
				"such as 172.18.0.1,fd18::1", a))
		}
		seen[a.Is4()] = true
	}
	return errors.Join(errs...)
}
