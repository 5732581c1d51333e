package exit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Translator translates exits. An owner is a network and a node, or names.ClusterOwner for what all exits share.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindExit }

func owner(n names.Network, node string) nb.Owner {
	return nb.Owner{Kind: names.KindExit, Name: n.Owner(node)}
}

// shared is the owner of what all exits have.
func shared() nb.Owner { return owner(names.Own, names.ClusterOwner) }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for _, n := range s.PrimaryNetworks() {
		for node := range s.In(n.Name).ExitAddrs {
			out = append(out, owner(n.Name, node))
		}
	}
	if len(s.PrimaryNetworks()) > 0 {
		out = append(out, shared())
	}
	return out
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindNode, cluster.KindNetworkDefinition, cluster.KindUserNetwork,
			cluster.KindClusterUserNetwork, cluster.KindService, cluster.KindEndpointSlice, cluster.KindServiceCIDR},
		Subjects: []cluster.Subject{index.NodeChassis, index.AddressTaken},
	}
}

// Affected implements translate.Translator.
func (t Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	on := func(node string) {
		for _, n := range s.PrimaryNetworks() {
			if len(s.In(n.Name).ExitAddrs[node]) > 0 {
				out = append(out, owner(n.Name, node))
			}
		}
	}
	switch c.Ref.Kind {
	case cluster.KindNetworkDefinition, cluster.KindUserNetwork, cluster.KindClusterUserNetwork:
		return append(t.defined(s, c), shared())
	case cluster.KindServiceCIDR:
		return t.Owners(s)
	case cluster.KindService, cluster.KindEndpointSlice:
		if serves(c.Old) || serves(c.New) || slices.ContainsFunc(c.About(index.VIPHolder), cluster.IsExitService) {
			out = append(out, shared())
		}
	case cluster.KindNode:
		if n := s.Networks[c.Network]; c.Granted && (n == nil || !n.Hosts) { // it may be one that is gone
			return []nb.Owner{owner(c.Network, c.Ref.Name.Name)}
		}
		on(c.Ref.Name.Name)
	}
	for _, n := range c.About(index.NodeChassis) {
		if n != c.Ref.Name || c.Ref.Kind != cluster.KindNode {
			on(n.Name)
		}
	}
	for _, svc := range c.About(index.AddressTaken) {
		if cluster.IsExitService(svc) && c.Ref.Kind != cluster.KindService {
			return append(out, shared())
		}
	}
	return out
}

// defined lists the exits of the network of a definition.
func (Translator) defined(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	network := names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name)
	for node := range s.In(network).ExitAddrs {
		out = append(out, owner(network, node))
	}
	return out
}

// Rows implements translate.Translator. A node wants nothing in a network until both addresses of its exit are granted.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	if o == shared() {
		return t.shared(s, o), nil
	}
	id, node := names.NetworkOf(o.Name)
	network, n := s.Networks[id], s.Nodes[node]
	if network == nil || !network.Primary || n == nil || !s.HasSwitch(node) {
		return translate.Rows{}, nil
	}
	r := exitRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: n.UID}, state: s, network: network, node: n,
		name: id.ExitRouter(node), out: s.In(id).ExitAddrs[node], join: s.In(id).JoinAddrs[node],
	}
	if len(r.out) == 0 || len(r.join) == 0 {
		return translate.Rows{}, nil
	}
	return translate.Rows{Rows: slices.Concat(r.router(), r.routes(), r.clients(), r.guards(), r.leave())}, nil
}

// exitRows makes the rows of one exit.
type exitRows struct {
	translate.Maker
	state   *cluster.State
	network *cluster.Network
	node    *cluster.Node
	name    string         // of the router
	out     []netip.Prefix // its addresses in the node's subnets
	join    []netip.Prefix // its addresses on the network's join switch
}

func (r exitRows) inRouter(column string) nb.Slot {
	return r.In(nbdb.LogicalRouterTable, names.RoleRouter, column)
}

// inNetworkRouter is a slot of the network's own router.
func (r exitRows) inNetworkRouter(column string) nb.Slot {
	return nb.Slot{In: nb.Ref{Table: nbdb.LogicalRouterTable,
		UUID: r.network.RouterRow(nbdb.LogicalRouterTable)}, Column: column}
}

// router is the router, bound to the node's chassis, and its links to the network and to the node's switch.
func (r exitRows) router() []nb.Row {
	options := translate.RouterOptions()
	options["chassis"] = index.ChassisOf(r.state).Of(r.node.Name)
	in, inPeer := translate.Link{Port: names.RouterToJoin(r.name), Peer: names.JoinToRouter(r.name),
		Addrs: r.join}.Models()
	out, outPeer := r.toPods()
	join := names.RowUUID(nbdb.LogicalSwitchTable, names.KindCluster, r.network.ClusterOwner(),
		names.RoleJoin, "")
	pods := r.state.Networks[names.Own].SwitchRow(nbdb.LogicalSwitchTable, r.node)
	ports := func(uuid string) nb.Slot {
		return nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: uuid}, Column: "ports"}
	}
	return []nb.Row{
		r.Row(names.RoleRouter, &nbdb.LogicalRouter{Name: r.name, Options: options,
			LoadBalancerGroup: []string{sharedRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup),
				r.network.ExitsLBGroupRow(nbdb.LoadBalancerGroupTable)}}),
		r.Row(names.RoleRouterToJoin, in, r.inRouter("ports")),
		r.Row(names.RoleJoinToRouter, inPeer, ports(join)),
		r.Row(names.RoleRouterToPods, out, r.inRouter("ports")),
		r.Row(names.RolePodsToRouter, outPeer, ports(pods)),
	}
}

// toPods is the link to the node's switch. The router's port has its addresses without their subnets: otherwise
// ovn-northd would have a flow for each pair of an exit and a pod of the node. As a router answers ARP only within its
// subnets, the switch answers in its place. ND has no such condition.
func (r exitRows) toPods() (*nbdb.LogicalRouterPort, *nbdb.LogicalSwitchPort) {
	alone := make([]netip.Prefix, len(r.out))
	for i, p := range r.out {
		alone[i] = ipnet.Single(p.Addr())
	}
	port, peer := translate.Link{Port: names.RouterToPods(r.name), Peer: names.PodsToRouter(r.name), Addrs: alone}.Models()
	if a, ok := ipnet.FirstOf(ipnet.Addrs(alone), true); ok {
		peer.Options["arp_proxy"] = port.MAC + " " + a.String()
	}
	return port, peer
}

// sharedRow is the UUID of a row that all exits share.
func sharedRow(table, role string) string {
	return names.RowUUID(table, names.KindExit, names.ClusterOwner, role, "")
}

// routes lead back to the network's pods, and on to the cluster router. What pods send gets the exit's address.
func (r exitRows) routes() []nb.Row {
	var rows []nb.Row
	for _, c := range r.network.Subnets {
		is4 := c.CIDR.Addr().Is4()
		via, ok := first(r.network.JoinSubnets, is4)
		to, reaches := ipnet.FirstOf(ipnet.Addrs(r.out), is4)
		if !ok || !reaches {
			continue
		}
		rows = append(rows,
			r.Row(names.PrefixRole(names.RoleToCluster, c.CIDR), &nbdb.LogicalRouterStaticRoute{
				IPPrefix: c.CIDR.String(), Nexthop: via.String()}, r.inRouter("static_routes")),
			r.Row(names.PrefixRole(names.RoleSNAT, c.CIDR), &nbdb.NAT{
				Type: nbdb.NATTypeSNAT, LogicalIP: c.CIDR.String(), ExternalIP: to.String()}, r.inRouter("nat")))
	}
	port := names.RouterToPods(r.name)
	for _, p := range r.state.NodeSubnets[r.node.Name] {
		if via, ok := subnet.Router(p); ok {
			rows = append(rows, r.Row(names.FamilyRole(names.RoleDefault, names.FamilyOf(via.Is4())),
				&nbdb.LogicalRouterStaticRoute{IPPrefix: translate.Anywhere(via.Is4()).String(), Nexthop: via.String(),
					OutputPort: &port}, r.inRouter("static_routes")))
		}
	}
	return rows
}

// clients give what comes from the cluster's own pods and management ports the exit's address on the join switch, so
// that answers come back to this exit. Clients from outside come by services with externalTrafficPolicy Local alone.
// They keep their addresses, and answers come back because only this node's pods are behind the exit.
func (r exitRows) clients() (rows []nb.Row) {
	for _, c := range r.state.Config.Subnets {
		if to, ok := ipnet.FirstOf(ipnet.Addrs(r.join), c.CIDR.Addr().Is4()); ok {
			rows = append(rows, r.Row(names.PrefixRole(names.RoleSNATClients, c.CIDR), &nbdb.NAT{
				Type: nbdb.NATTypeSNAT, LogicalIP: c.CIDR.String(), ExternalIP: to.String()}, r.inRouter("nat")))
		}
	}
	return rows
}

// first is the first address of the subnet of a family: the router's own.
func first(subnets []netip.Prefix, is4 bool) (a netip.Addr, ok bool) {
	for _, p := range subnets {
		if p.Addr().Is4() == is4 {
			return ipnet.Nth(p, 1)
		}
	}
	return a, false
}

// guards keep both sides apart. Into the network come only answers, and what is for a service that is reachable from
// outside: connection tracking or a load balancer of the exit has given them the pod's address as the destination. What
// is sent to a pod's address itself is dropped, and what pretends to be of the network. Out of the network goes nothing
// that is for the cluster's own pods, Services and routers, unless a load balancer of the exit has chosen the
// destination, or it answers such a connection.
func (r exitRows) guards() []nb.Row {
	var rows []nb.Row
	drop := func(role string, match string) {
		rows = append(rows, r.Row(role, &nbdb.LogicalRouterPolicy{Priority: names.PolicyExitGuard, Match: match,
			Action: nbdb.LogicalRouterPolicyActionDrop}, r.inRouter("policies")))
	}
	for _, c := range r.network.Subnets {
		drop(names.PrefixRole(names.RoleGuardIn, c.CIDR), fmt.Sprintf("inport == %q && %s && "+unasked,
			names.RouterToPods(r.name), translate.Destination(c.CIDR)))
	}
	for _, f := range []names.Family{names.IPv4, names.IPv6} {
		if of := r.within(f); len(of) > 0 {
			drop(names.FamilyRole(names.RoleGuardSource, f), fmt.Sprintf("inport == %q && %s",
				names.RouterToPods(r.name), translate.OneOf(f, "src", of)))
		}
		own := r.own(f == names.IPv4)
		if len(own) > 0 {
			drop(names.FamilyRole(names.RoleGuardOut, f), fmt.Sprintf("inport == %q && %s && "+unasked,
				names.RouterToJoin(r.name), translate.OneOf(f, "dst", own)))
		}
	}
	return rows
}

// unasked matches a packet that neither is an answer nor has its destination from a load balancer.
const unasked = "(!ct.trk || (!ct.rpl && !ct.dnat))"

// within lists the ranges of a family that only the network's pods and exits have: its policies take a source there for
// one of them.
func (r exitRows) within(f names.Family) (out []string) {
	for _, p := range slices.Concat(r.network.JoinSubnets, r.network.Ranges()) {
		if names.FamilyOf(p.Addr().Is4()) == f {
			out = append(out, p.String())
		}
	}
	return out
}

// own lists the ranges of a family that are the cluster's own.
func (r exitRows) own(is4 bool) (out []string) {
	for _, p := range slices.Concat(r.state.Config.Ranges(), r.state.ServiceRanges()) {
		if text := p.String(); p.Addr().Is4() == is4 && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// leave has the network's router send what leaves the network to the exit of the pod's own node. Packets to the
// network's own pods match a policy of a higher priority (names.PolicyInside). In IPv6, the next hop of a policy needs
// a route.
func (r exitRows) leave() []nb.Row {
	var rows []nb.Row
	for _, p := range r.join {
		is4, via := p.Addr().Is4(), p.Addr().String()
		f := names.FamilyOf(is4)
		rows = append(rows, r.Row(names.FamilyRole(names.RoleLeave, f), &nbdb.LogicalRouterPolicy{
			Priority: names.PolicyExit, Match: fmt.Sprintf("inport == %q && %s && is_chassis_resident(%q)",
				r.fromPods(), translate.Keyword(f), names.RouterToJoin(r.name)),
			Action: nbdb.LogicalRouterPolicyActionReroute, Nexthops: []string{via}}, r.inNetworkRouter("policies")))
		if !is4 {
			rows = append(rows, r.Row(names.FamilyRole(names.RoleToGateway, f), &nbdb.LogicalRouterStaticRoute{
				IPPrefix: ipnet.Single(p.Addr()).String(), Nexthop: via}, r.inNetworkRouter("static_routes")))
		}
	}
	return rows
}

// fromPods is the port of the network's router to the switch of the node's pods.
func (r exitRows) fromPods() string {
	if r.network.Topology == cluster.Layer3 {
		return names.RouterToSwitch(r.network.Name.NodeSwitch(r.node.Name))
	}
	return names.RouterToSwitch(r.network.Name.SharedSwitch())
}

// serves is true for one of cluster.ExitServices, or a slice of its endpoints.
func serves(o cluster.Object) bool {
	switch o := o.(type) {
	case *cluster.Service:
		return cluster.IsExitService(o.Name)
	case *cluster.EndpointSlice:
		return cluster.IsExitService(cluster.Name{Namespace: o.Name.Namespace, Name: o.Service})
	}
	return false
}

// shared is the load balancers of all exits. Each has the ClusterIPs alone, with all endpoints.
func (t Translator) shared(s *cluster.State, o nb.Owner) (out translate.Rows) {
	if len(s.PrimaryNetworks()) == 0 {
		return out
	}
	m := translate.Maker{Schema: t.Schema, Owner: o}
	out.Rows = []nb.Row{m.Row(names.RoleLBGroup, &nbdb.LoadBalancerGroup{Name: names.ExitLBGroup})}
	for _, name := range cluster.ExitServices() {
		svc := s.Services[name]
		if svc == nil {
			continue
		}
		for _, proto := range cluster.Protocols() {
			if vips := vipsOf(s, svc, proto); len(vips) > 0 {
				out.Rows = append(out.Rows, balancer(m, svc, proto, vips))
			}
		}
	}
	return out
}

// balancer is the load balancer of one of the services.
func balancer(m translate.Maker, svc *cluster.Service, proto cluster.Protocol, vips map[string]string) nb.Row {
	protocol := strings.ToLower(string(proto))
	options := map[string]string{"reject": "true"}
	if proto == cluster.UDP {
		options["ct_flush"] = "true"
	}
	return m.Row(fmt.Sprintf("%s-%s-%s", names.RoleLoadBalancer, svc.Name, protocol), &nbdb.LoadBalancer{
		Name:     names.LoadBalancer(svc.Name.Namespace, svc.Name.Name, string(proto), names.ExitPlace),
		Protocol: &protocol, Vips: vips, Options: options,
		SelectionFields: []string{"ip_dst", "ip_src", "tp_dst", "tp_src"},
	}, m.In(nbdb.LoadBalancerGroupTable, names.RoleLBGroup, "load_balancer"))
}

// vipsOf maps the ClusterIPs of a service to the endpoints.
func vipsOf(s *cluster.State, svc *cluster.Service, proto cluster.Protocol) map[string]string {
	out := map[string]string{}
	eps, _ := svc.Within(s.Config.Services, s.SlicesOf(svc.Name))
	for _, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, ip := range svc.ClusterIPs {
			var backends []string
			for _, b := range cluster.Choose(port, ip.Is4(), eps).Backends {
				backends = append(backends, b.String())
			}
			vip := cluster.VIP{Addr: netip.AddrPortFrom(ip, port.Port), Protocol: proto}
			if index.VIPsOf(s).Holder(vip) == svc {
				out[vip.Addr.String()] = strings.Join(backends, ",")
			}
		}
	}
	return out
}
