package attachment

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// mostExcluded is how many ranges a network may exclude: each is passed over when an address is granted.
const mostExcluded = 64

// part is a range in a field that has parts of the subnets.
type part struct {
	netip.Prefix
	field string
}

// excluded reads which parts of the subnets are not for all pods.
func (c netConf) excluded(n *cluster.Network, _ cluster.Name) error {
	var parts []part
	for _, f := range []struct{ name, value string }{
		{"excludeSubnets", c.ExcludeSubnets}, {"reservedSubnets", c.ReservedSubnets},
		{"infrastructureSubnets", c.InfrastructureSubnets},
	} {
		more, err := c.partsIn(n, f.name, f.value)
		if err != nil {
			return err
		}
		parts = append(parts, more...)
	}
	if len(parts) > mostExcluded {
		return fmt.Errorf("%s: %d ranges with those of other fields, want at most %d", parts[len(parts)-1].field,
			len(parts), mostExcluded)
	}
	var infrastructure []netip.Prefix
	for i, p := range parts {
		for _, other := range parts[:i] {
			if p.Overlaps(other.Prefix) {
				return fmt.Errorf("%s: %s overlaps %s of %s, want disjoint ones", p.field, p.Prefix, other.Prefix, other.field)
			}
		}
		switch p.field {
		case "reservedSubnets":
			n.Reserved = append(n.Reserved, p.Prefix)
		case "infrastructureSubnets":
			infrastructure = append(infrastructure, p.Prefix)
			fallthrough
		default:
			n.Excluded = append(n.Excluded, p.Prefix)
		}
	}
	return c.routers(n, infrastructure)
}

// partsIn reads the parts in one field.
func (c netConf) partsIn(n *cluster.Network, field, value string) (out []part, err error) {
	parts, err := config.ParsePrefixes(field, value)
	switch {
	case err != nil || len(parts) == 0:
		return nil, err
	case n.Topology == cluster.Layer3:
		return nil, fmt.Errorf("%s: a layer3 network has none, want layer2 or localnet", field)
	case field != "excludeSubnets" && !c.routed(n):
		return nil, fmt.Errorf("%s: only a layer2 network of role primary has it, want none", field)
	}
	for _, p := range parts {
		if !within(n.Subnets, p) {
			return nil, fmt.Errorf("%s: %s is in none of subnets, want a part of one", field, p)
		}
		out = append(out, part{p, field})
	}
	return out, nil
}

func within(subnets []config.ClusterSubnet, p netip.Prefix) bool {
	return slices.ContainsFunc(subnets, func(s config.ClusterSubnet) bool {
		return s.CIDR.Bits() <= p.Bits() && s.CIDR.Contains(p.Addr())
	})
}

// routed is true for a network of one switch that has a router.
func (c netConf) routed(n *cluster.Network) bool {
	return c.Role == "primary" && n.Topology == cluster.Layer2
}

// routers reads the addresses of the network's router. Without them it has the first address of the infrastructure,
// and without that the first of the subnet.
func (c netConf) routers(n *cluster.Network, infrastructure []netip.Prefix) error {
	const field = "defaultGatewayIPs"
	if c.DefaultGatewayIPs != "" && !c.routed(n) {
		return fmt.Errorf("%s: only a layer2 network of role primary has it, want none", field)
	}
	for _, text := range strings.FieldsFunc(c.DefaultGatewayIPs, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, err := address(field, text)
		if err != nil {
			return err
		}
		holds := func(p netip.Prefix) bool { return p.Contains(a) }
		switch {
		case slices.ContainsFunc(n.Routers, func(b netip.Addr) bool { return a.Is4() == b.Is4() }):
			return fmt.Errorf("%s: %s: want one of each address family at most", field, c.DefaultGatewayIPs)
		case len(infrastructure) > 0 && !slices.ContainsFunc(infrastructure, holds):
			return fmt.Errorf("%s: %s is in none of infrastructureSubnets, want an address of one", field, a)
		case !hostIn(n.Subnets, a):
			return fmt.Errorf("%s: %s is not one for hosts in subnets, want such an address", field, a)
		}
		n.Routers = append(n.Routers, a)
	}
	for _, s := range n.Subnets {
		if slices.ContainsFunc(n.Routers, s.CIDR.Contains) {
			continue
		}
		for _, p := range infrastructure {
			if a, ok := firstHost(n.Subnets, p); ok && s.CIDR.Contains(a) {
				n.Routers = append(n.Routers, a)
				break
			}
		}
	}
	return nil
}

// address reads an address in a field.
func address(field, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return a, fmt.Errorf("%s: %.64q, want an address such as 10.99.0.1", field, text)
	}
	return a, nil
}

// oneAddress is the error that a text is not an address: a configuration has several of them in one text.
func oneAddress(field, text string) error {
	_, err := address(field, text)
	return err
}

// firstHost is the first address in a part of the subnets that a host can have. It is the first of the part or the
// second, if there is one.
func firstHost(subnets []config.ClusterSubnet, p netip.Prefix) (netip.Addr, bool) {
	for _, a := range []netip.Addr{p.Addr(), p.Addr().Next()} {
		if p.Contains(a) && hostIn(subnets, a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// hostIn is true for an address in one of the subnets that is neither its first, nor the broadcast address.
func hostIn(subnets []config.ClusterSubnet, a netip.Addr) bool {
	return slices.ContainsFunc(subnets, func(s config.ClusterSubnet) bool {
		return s.CIDR.Contains(a) && a != s.CIDR.Addr() && (a.Is6() || a != ipnet.Last(s.CIDR))
	})
}
