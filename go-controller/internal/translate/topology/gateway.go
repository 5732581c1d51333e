package topology

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Gateway translates what makes a node a gateway.
type Gateway struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Gateway) Kind() names.Kind { return names.KindGateway }

// Owners implements translate.Translator.
func (Gateway) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for name, n := range s.Nodes {
		if n.Gateway != nil {
			out = append(out, gatewayOwner(name))
		}
	}
	return out
}

// Depends implements translate.Translator.
func (Gateway) Depends() translate.Dependencies {
	return translate.Dependencies{Kinds: []cluster.Kind{cluster.KindNode}}
}

// Affected implements translate.Translator. When the first gateway of a family
// comes into service, or the last goes out of service, packets cease to leave
// through all the others, or begin to.
func (t Gateway) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	all := c.Concerns(index.GatewayInService)
	if !isGateway(c.Old) && !isGateway(c.New) && !all {
		return nil
	}
	own := gatewayOwner(c.Ref.Name.Name)
	if all {
		return append(slices.DeleteFunc(t.Owners(s), func(o nb.Owner) bool { return o == own }), own)
	}
	out := append(pinningToo(s, c), own)
	for _, rival := range c.About(index.GatewayAddress) {
		out = append(out, gatewayOwner(rival.Name))
	}
	return out
}

func gatewayOwner(node string) nb.Owner { return nb.Owner{Kind: names.KindGateway, Name: node} }

func isGateway(o cluster.Object) bool {
	n, ok := o.(*cluster.Node)
	return ok && n.Gateway != nil
}

// Rows implements translate.Translator.
func (t Gateway) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	out := translate.Rows{Reports: lostAddresses(s, o.Name)}
	n, gateway, join := s.Nodes[o.Name], index.GatewaysOf(s).Of(s, o.Name), s.JoinAddrs[o.Name]
	if gateway == nil || len(join) == 0 {
		return out, nil
	}
	towards, err := joinAddresses(s)
	if err != nil {
		return out, err
	}
	r := gatewayRows{
		schema: t.Schema, owner: o, node: n, gateway: gateway, state: s, gateways: index.GatewaysOf(s),
		join: join, cluster: ipnet.Addrs(towards),
	}
	hosts, err := r.toHost()
	if err != nil {
		return out, err
	}
	out.Rows = slices.Concat(r.router(), r.external(), r.routes(), r.pins(), []nb.Row{r.leakGuard()}, hosts)
	return out, nil
}

// gatewayRows makes the rows of one gateway.
type gatewayRows struct {
	schema   *nb.Schema
	owner    nb.Owner
	node     *cluster.Node
	gateway  *annotation.L3Gateway
	state    *cluster.State
	gateways *index.Gateways
	join     []netip.Prefix // of the gateway router on the join switch
	cluster  []netip.Addr   // of the cluster router there
}

func (r gatewayRows) key(table, role string) nb.Key {
	return nb.Key{Table: table, Owner: r.owner, Role: role}
}

func (r gatewayRows) uuid(table, role string) string {
	return names.RowUUID(table, names.KindGateway, r.node.Name, role, r.node.UID)
}

func (r gatewayRows) ref(table, role string) nb.Ref {
	return nb.Ref{Table: table, UUID: r.uuid(table, role)}
}

// in is the slot of a row of this gateway.
func (r gatewayRows) in(table, role, column string) nb.Slot {
	return nb.Slot{In: r.ref(table, role), Column: column}
}

// router is the gateway router, bound to the node's chassis, and its link to
// the join switch.
func (r gatewayRows) router() []nb.Row {
	name, mac := names.GatewayRouter(r.node.Name), ipnet.MACFor(ipnet.Addrs(r.join)).String()
	joinSwitch := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: names.ClusterRow(nbdb.LogicalSwitchTable, names.RoleJoin)}
	options := routerOptions()
	options["chassis"] = r.node.Chassis()
	options["lb_force_snat_ip"] = joined(ipnet.Addrs(r.join), " ")
	ids := map[string]string{names.KeyPhysicalIP: r.gateway.IPs[0].Addr().String()}
	if len(r.gateway.IPs) > 1 {
		ids[names.KeyPhysicalIPs] = joined(ipnet.Addrs(r.gateway.IPs), ",")
	}
	return []nb.Row{
		r.schema.NewRow(r.key(nbdb.LogicalRouterTable, names.RoleRouter), &nbdb.LogicalRouter{
			UUID: r.uuid(nbdb.LogicalRouterTable, names.RoleRouter), Name: name, Options: options, ExternalIDs: ids,
		}),
		r.schema.NewRow(r.key(nbdb.LogicalRouterPortTable, names.RoleRouterToJoin), &nbdb.LogicalRouterPort{
			UUID: r.uuid(nbdb.LogicalRouterPortTable, names.RoleRouterToJoin), Name: names.RouterToJoin(name),
			MAC: mac, Networks: texts(r.join), ExternalIDs: map[string]string{names.KeyConnectToJoin: "yes"}, Options: gatewayMTU(r.gateway.PodMTU),
		}, r.in(nbdb.LogicalRouterTable, names.RoleRouter, "ports")),
		r.schema.NewRow(r.key(nbdb.LogicalSwitchPortTable, names.RoleJoinToRouter), &nbdb.LogicalSwitchPort{
			UUID: r.uuid(nbdb.LogicalSwitchPortTable, names.RoleJoinToRouter), Name: names.JoinToRouter(name),
			Type: "router", Addresses: []string{mac}, Options: map[string]string{"router-port": names.RouterToJoin(name)},
		}, nb.Slot{In: joinSwitch, Column: "ports"}),
	}
}

// gatewayMTU has a gateway router's port tell senders of packets that are larger
// than what is behind the port takes, in bytes of IP, instead of sending them
// (ovn-nb(5), Logical_Router_Port options:gateway_mtu).
func gatewayMTU(mtu int) map[string]string {
	if mtu == 0 {
		return nil
	}
	return map[string]string{"gateway_mtu": strconv.Itoa(mtu)}
}

// external is the switch between the gateway router and the node's bridge.
func (r gatewayRows) external() []nb.Row {
	node, mac := r.node.Name, r.gateway.MAC.String()
	inSwitch := r.in(nbdb.LogicalSwitchTable, names.RoleExternal, "ports")
	localnet := &nbdb.LogicalSwitchPort{
		UUID: r.uuid(nbdb.LogicalSwitchPortTable, names.RoleLocalnet), Name: r.gateway.Port,
		Type: "localnet", Addresses: []string{"unknown"}, Options: map[string]string{"network_name": r.gateway.Network},
	}
	if r.gateway.Bridge == names.IntegrationBridge { // a NIC of OVN's own, which is a port like a pod's
		localnet.Type, localnet.Options = "", map[string]string{"requested-chassis": r.node.Chassis()}
	}
	if r.gateway.VLAN != 0 {
		vlan := r.gateway.VLAN
		localnet.Tag = &vlan
	}
	return []nb.Row{
		r.schema.NewRow(r.key(nbdb.LogicalSwitchTable, names.RoleExternal), &nbdb.LogicalSwitch{
			UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleExternal), Name: names.ExternalSwitch(node),
		}),
		r.schema.NewRow(r.key(nbdb.LogicalSwitchPortTable, names.RoleLocalnet), localnet, inSwitch),
		r.schema.NewRow(r.key(nbdb.LogicalRouterPortTable, names.RoleRouterToOut), &nbdb.LogicalRouterPort{
			UUID: r.uuid(nbdb.LogicalRouterPortTable, names.RoleRouterToOut), Name: names.RouterToExternal(node),
			MAC: mac, Networks: texts(r.gateway.IPs), ExternalIDs: map[string]string{names.KeyPhysicalPort: "yes"}, Options: gatewayMTU(r.gateway.MTU),
		}, r.in(nbdb.LogicalRouterTable, names.RoleRouter, "ports")),
		r.schema.NewRow(r.key(nbdb.LogicalSwitchPortTable, names.RoleOutToRouter), &nbdb.LogicalSwitchPort{
			UUID: r.uuid(nbdb.LogicalSwitchPortTable, names.RoleOutToRouter), Name: names.ExternalToRouter(node),
			Type: "router", Addresses: []string{mac}, Options: map[string]string{"router-port": names.RouterToExternal(node)},
		}, inSwitch),
	}
}

// routes is the way of packets between the pods and the outside: on the gateway
// router back to the cluster router and on to the next hop, with the node's
// address as the source; on the cluster router to here.
func (r gatewayRows) routes() []nb.Row {
	var rows []nb.Row
	out := names.RouterToExternal(r.node.Name)
	for _, c := range r.state.Config.Subnets {
		is4 := c.CIDR.Addr().Is4()
		if via, ok := ipnet.FirstOf(r.cluster, is4); ok {
			rows = append(rows, r.own(names.PrefixRole(names.RoleToCluster, c.CIDR), c.CIDR, via, ""))
		}
		if ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateway.IPs), is4); ok {
			rows = append(rows, r.snat(c.CIDR, ip))
		}
	}
	for _, hop := range r.gateway.NextHops {
		is4 := hop.Is4()
		rows = append(rows, r.own(names.FamilyRole(names.RoleDefault, names.FamilyOf(is4)), everything(is4), hop, out))
		via, ok := r.state.JoinAddr(r.node.Name, is4)
		if !ok {
			continue // no pod has an address of this family
		}
		if r.outranked(is4) {
			rows = append(rows, r.leaving(names.FamilyRole(names.RoleToGateway, names.FamilyOf(is4)), netip.PrefixFrom(via, via.BitLen()), via, nil))
		}
		if r.gateways.Chosen(r.state, r.node.Name, is4) {
			rows = append(rows, r.exits(via)...)
		}
	}
	return rows
}

// exits is the cluster router's routes to a gateway that is in service: of the
// node's own pods, and of everybody who has nothing nearer.
func (r gatewayRows) exits(via netip.Addr) []nb.Row {
	is4 := via.Is4()
	rows := []nb.Row{r.leaving(names.FamilyRole(names.RoleLeave, names.FamilyOf(is4)), everything(is4), via, nil)}
	bySource := nbdb.LogicalRouterStaticRoutePolicySrcIP
	for _, subnet := range r.state.NodeSubnets[r.node.Name] {
		if subnet.Addr().Is4() == is4 {
			rows = append(rows, r.leaving(names.FamilyRole(names.RoleOwnPods, names.FamilyOf(is4)), subnet, via, &bySource))
		}
	}
	return rows
}

// outranked tells whether a route by the source address of a node's pods would
// be a better match than the join switch's own subnet, which is shorter: the
// gateway router's address there then needs a route that is better still
// (ovn-nb(5), Logical_Router_Static_Route policy).
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

// toHost is the cluster router's routes to the node's own address, which its
// gateway router has too: through the management port, where only the node
// answers. So it is with the others by which Kubernetes knows the node: what its
// gateway router sends to them would leave by the NIC.
func (r gatewayRows) toHost() ([]nb.Row, error) {
	var rows []nb.Row
	for _, subnet := range r.state.NodeSubnets[r.node.Name] {
		is4 := subnet.Addr().Is4()
		ip, ok := ipnet.FirstOf(ipnet.Addrs(r.gateway.IPs), is4)
		if !ok {
			continue
		}
		management, err := nth(subnet, 2)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r.leaving(names.FamilyRole(names.RoleToHost, names.FamilyOf(is4)), netip.PrefixFrom(ip, ip.BitLen()), management.Addr(), nil))
		seen := map[netip.Addr]bool{ip: true}
		for _, other := range r.node.Addrs {
			if other.Is4() == is4 && !seen[other] {
				seen[other] = true
				p := netip.PrefixFrom(other, other.BitLen())
				rows = append(rows, r.leaving(names.PrefixRole(names.RoleToHost, p), p, management.Addr(), nil))
			}
		}
	}
	return rows, nil
}

// own is a route of the gateway router.
func (r gatewayRows) own(role string, to netip.Prefix, via netip.Addr, port string) nb.Row {
	route := &nbdb.LogicalRouterStaticRoute{UUID: r.uuid(nbdb.LogicalRouterStaticRouteTable, role), IPPrefix: to.String(), Nexthop: via.String()}
	if port != "" {
		route.OutputPort = &port
	}
	return r.schema.NewRow(r.key(nbdb.LogicalRouterStaticRouteTable, role), route, r.in(nbdb.LogicalRouterTable, names.RoleRouter, "static_routes"))
}

// leaving is a route of the cluster router.
func (r gatewayRows) leaving(role string, match netip.Prefix, via netip.Addr, policy *nbdb.LogicalRouterStaticRoutePolicy) nb.Row {
	return r.schema.NewRow(r.key(nbdb.LogicalRouterStaticRouteTable, role), &nbdb.LogicalRouterStaticRoute{
		UUID: r.uuid(nbdb.LogicalRouterStaticRouteTable, role), IPPrefix: match.String(), Nexthop: via.String(), Policy: policy,
	}, nb.Slot{In: routerRef(r.state), Column: "static_routes"})
}

// snat gives packets of pods that leave through the gateway the node's address.
func (r gatewayRows) snat(pods netip.Prefix, ip netip.Addr) nb.Row {
	role := names.PrefixRole(names.RoleSNAT, pods)
	return r.schema.NewRow(r.key(nbdb.NATTable, role), &nbdb.NAT{
		UUID: r.uuid(nbdb.NATTable, role), Type: nbdb.NATTypeSNAT, LogicalIP: pods.String(), ExternalIP: ip.String(),
		ExternalPortRange: names.SNATPorts,
	}, r.in(nbdb.LogicalRouterTable, names.RoleRouter, "nat"))
}

// everything is 0.0.0.0/0 or ::/0.
func everything(is4 bool) netip.Prefix {
	if is4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

func joined(addrs []netip.Addr, by string) string {
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	return strings.Join(out, by)
}
