package topology

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// routes lead packets between the pods and the outside. The gateway router sends them back to the cluster router, or on
// to the next hop with the node's address as the source. The cluster router sends them here.
func (r gatewayRows) routes() []nb.Row {
	var rows []nb.Row
	for _, c := range r.state.Config.Subnets {
		is4 := c.CIDR.Addr().Is4()
		if via, ok := ipnet.FirstOf(r.clusterRouter, is4); ok {
			rows = append(rows, r.gatewayRoute(names.PrefixRole(names.RoleToCluster, c.CIDR), c.CIDR, via, nil))
		}
		if ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateway.IPs), is4); ok {
			rows = append(rows, r.snat(c.CIDR, ip))
		}
	}
	port := names.RouterToExternal(r.node.Name)
	for _, hop := range r.gateway.NextHops {
		is4 := hop.Is4()
		rows = append(rows, r.gatewayRoute(familyRole(names.RoleDefault, is4), translate.Anywhere(is4), hop, &port))
		via, ok := r.state.JoinAddr(r.node.Name, is4)
		if !ok {
			continue // no pod has an address of this family
		}
		if r.outranked(is4) {
			rows = append(rows, r.clusterRoute(familyRole(names.RoleToGateway, is4), ipnet.Single(via), via, nil))
		}
		if r.gateways.Chosen(r.state, r.node.Name, is4) {
			rows = append(rows, r.egressRoutes(via)...)
		}
	}
	return rows
}

// egressRoutes are the cluster router's routes to a gateway that is in service: one for its node's own pods, and one
// for all pods whose node has no gateway.
func (r gatewayRows) egressRoutes(via netip.Addr) []nb.Row {
	is4 := via.Is4()
	rows := []nb.Row{r.clusterRoute(familyRole(names.RoleLeave, is4), translate.Anywhere(is4), via, nil)}
	bySource := nbdb.LogicalRouterStaticRoutePolicySrcIP
	for _, subnet := range r.state.NodeSubnets[r.node.Name] {
		if subnet.Addr().Is4() == is4 {
			rows = append(rows, r.clusterRoute(familyRole(names.RoleOwnPods, is4), subnet, via, &bySource))
		}
	}
	return rows
}

// outranked is true when a route by the source address of a node's pods matches better than the join subnet, because
// its prefix is longer. The gateway router's address there then needs a route that matches still better (ovn-nb(5),
// Logical_Router_Static_Route policy).
func (r gatewayRows) outranked(is4 bool) bool {
	for _, c := range r.state.Config.Subnets {
		for _, j := range r.join {
			if c.CIDR.Addr().Is4() == is4 && j.Addr().Is4() == is4 && c.NodeLength > j.Bits() {
				return true
			}
		}
	}
	return false
}

// routesToNode are the cluster router's routes to the node's own address. The gateway router has that address too, so
// that these routes go through the management port, where only the node answers. The node's other addresses that
// Kubernetes knows get such routes as well: the gateway router would send packets to them out of the NIC.
func (r gatewayRows) routesToNode() ([]nb.Row, error) {
	var rows []nb.Row
	subnets := r.state.NodeSubnets[r.node.Name]
	management, err := nths(subnets, subnet.ManagementHost)
	if err != nil {
		return nil, err
	}
	for i, subnet := range subnets {
		is4, via := subnet.Addr().Is4(), management[i].Addr()
		ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateway.IPs), is4)
		if !ok {
			continue
		}
		rows = append(rows, r.clusterRoute(familyRole(names.RoleToHost, is4), ipnet.Single(ip), via, nil))
		seen := map[netip.Addr]bool{ip: true}
		for _, other := range r.gateways.Own(r.node.Name) {
			if other.Is4() == is4 && !seen[other] {
				seen[other] = true
				p := ipnet.Single(other)
				rows = append(rows, r.clusterRoute(names.PrefixRole(names.RoleToHost, p), p, via, nil))
			}
		}
	}
	return rows, nil
}

// gatewayRoute is a route of the gateway router; port is the port to send by, nil for the one that reaches via.
func (r gatewayRows) gatewayRoute(role string, to netip.Prefix, via netip.Addr, port *string) nb.Row {
	return r.Row(role, &nbdb.LogicalRouterStaticRoute{IPPrefix: to.String(), Nexthop: via.String(), OutputPort: port},
		r.inRouter("static_routes"))
}

// clusterRoute is a route of the cluster router.
func (r gatewayRows) clusterRoute(
	role string, match netip.Prefix, via netip.Addr, policy *nbdb.LogicalRouterStaticRoutePolicy,
) nb.Row {
	return r.Row(role, &nbdb.LogicalRouterStaticRoute{IPPrefix: match.String(), Nexthop: via.String(), Policy: policy},
		inClusterRouter(r.state, "static_routes"))
}

// snat gives packets of pods that leave through the gateway the node's address.
func (r gatewayRows) snat(pods netip.Prefix, ip netip.Addr) nb.Row {
	return r.Row(names.PrefixRole(names.RoleSNAT, pods), &nbdb.NAT{
		Type: nbdb.NATTypeSNAT, LogicalIP: pods.String(), ExternalIP: ip.String(), ExternalPortRange: names.SNATPorts,
	}, r.inRouter("nat"))
}
