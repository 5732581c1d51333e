package topology

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Cluster translates what a network has once: its distributed router, the join switch, and the load balancer group of
// all nodes; or the switch that all its pods share.
type Cluster struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Cluster) Kind() names.Kind { return names.KindCluster }

// Owners implements translate.Translator.
func (Cluster) Owners(s *cluster.State) []nb.Owner {
	out := nb.Owners(names.KindCluster, s.Networks, func(n names.Network) string { return s.Networks[n].ClusterOwner() })
	return append(out, refused(s)...)
}

// Depends implements translate.Translator. The rows also depend on the configuration, which does not change while the
// program runs.
func (Cluster) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindServiceCIDR, cluster.KindNetworkDefinition, cluster.KindUserNetwork,
			cluster.KindClusterUserNetwork, cluster.KindService, cluster.KindPod, cluster.KindNamespace,
			cluster.KindNode},
		Subjects: []cluster.Subject{index.MulticastUsed, index.LoggingUsed, index.PrimaryOf},
	}
}

// Affected implements translate.Translator.
func (t Cluster) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	return append(t.affected(s, c), claiming(s, c)...)
}

func (t Cluster) affected(s *cluster.State, c cluster.Change) []nb.Owner {
	if c.Ref.Kind.Defines() {
		// The namespace is not in the shared network of the name, or is in it again.
		shared := cluster.Name{Name: c.Ref.Name.Name}
		return []nb.Owner{definedOwner(c.Ref.Name, names.ClusterOwner), definedOwner(c.Ref.Name, names.UserOwner),
			definedOwner(shared, names.UserOwner)}
	}
	if c.Concerns(index.MulticastUsed) || c.Concerns(index.LoggingUsed) {
		return t.Owners(s)
	}
	switch c.Ref.Kind {
	case cluster.KindService:
		return sharedPrimaries(s, c)
	case cluster.KindPod:
		return joinedOrLeft(s, c)
	case cluster.KindNamespace:
		return selecting(s, c)
	case cluster.KindNode:
		return bridging(s, c)
	}
	return t.Owners(s)
}

// sharedPrimaries lists the owners of primary networks' rows, if a service that exits have was changed.
func sharedPrimaries(s *cluster.State, c cluster.Change) (out []nb.Owner) {
	if !cluster.IsExitService(c.Ref.Name) {
		return nil
	}
	for _, n := range s.PrimaryNetworks() {
		out = append(out, nb.Owner{Kind: names.KindCluster, Name: n.ClusterOwner()})
	}
	return out
}

// Rows implements translate.Translator.
func (t Cluster) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	network, name := names.NetworkOf(o.Name)
	defined, ok := cluster.DefinitionOf(network)
	if ok && name == names.UserOwner && s.UserNetwork(defined) != nil {
		return t.userRows(s, o, s.UserNetwork(defined))
	}
	out, err := t.rows(s, o)
	if d := s.NetworkDefinitions[defined]; ok && err == nil && d != nil && name == names.ClusterOwner {
		out.Reports = append(out.Reports, outdone(s, network, d.Ref(), d.UID)...)
		n := s.Networks[network]
		if n != nil {
			out.Reports = append(out.Reports, overlapping(s, n, d.Ref(), d.UID)...)
		}
		if nodes, _ := unbridged(s, n); len(nodes) > 0 {
			out.Reports = append(out.Reports, cluster.Problem{Ref: d.Ref(), UID: d.UID, Reason: reasonUnbridged,
				Message: withoutBridge(n, nodes)})
		}
	}
	return out, err
}

// rows is the rows of an owner's network.
func (t Cluster) rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	network, _ := names.NetworkOf(o.Name)
	n := s.Networks[network]
	if n == nil || o.Name != n.ClusterOwner() {
		return translate.Rows{}, nil
	}
	m := translate.Maker{Schema: t.Schema, Owner: o}
	if n.Topology != cluster.Layer3 {
		rows, err := sharedSwitch(m, s, n)
		return translate.Rows{Rows: rows}, err
	}
	router := &nbdb.LogicalRouter{UUID: n.RouterRow(nbdb.LogicalRouterTable), Name: n.Name.Router(s.Config.RouterName),
		Options: translate.RouterOptions()}
	if n.Hosts {
		router.ExternalIDs = map[string]string{names.KeyClusterRouter: "yes",
			names.SubnetsKey: config.SubnetList(s.Config.Subnets), names.JoinKey: config.PrefixList(s.Config.JoinSubnets)}
		if index.MulticastIn(s).Any() {
			router.Options["mcast_relay"] = "true"
		}
	}
	rows := []nb.Row{m.Row(names.RoleRouter, router)}
	join, err := joinRows(m, n, router.Name)
	if err != nil {
		return translate.Rows{}, err
	}
	rows = append(rows, join...)
	if n.Balances() {
		rows = append(rows, lbGroups(m, n)...)
	}
	if n.Hosts {
		rows = append(rows, allNodes(m, s)...)
		rows = append(rows, logMeter(m, s)...)
	}
	rows = append(rows, leaving(m, n)...)
	return translate.Rows{Rows: append(rows, policies(m, s, n)...)}, nil
}

// lbGroups are the load balancer group of the network's services, and that of its exits.
func lbGroups(m translate.Maker, n *cluster.Network) []nb.Row {
	rows := []nb.Row{m.Row(names.RoleLBGroup, &nbdb.LoadBalancerGroup{Name: names.LBGroup(n.ClusterOwner())})}
	if n.Primary {
		rows = append(rows,
			m.Row(names.RoleExitsLBGroup, &nbdb.LoadBalancerGroup{Name: names.ExitsLBGroup(n.ClusterOwner())}))
	}
	return rows
}

// leaving is what a primary network's router has for packets that leave the network. The policies of exits send them
// on. But a packet without a route never gets to the policies, so there is one; its next hop does not matter. What no
// exit takes is dropped.
func leaving(m translate.Maker, n *cluster.Network) []nb.Row {
	if !n.Primary {
		return nil
	}
	rows := []nb.Row{m.Row(names.RoleDiscard, &nbdb.LogicalRouterPolicy{Priority: names.PolicyNoExit, Match: "ip",
		Action: nbdb.LogicalRouterPolicyActionDrop}, inRouter(n, "policies"))}
	for _, p := range n.JoinSubnets {
		via, ok := ipnet.Nth(p, 2)
		if is4 := p.Addr().Is4(); ok {
			rows = append(rows, m.Row(familyRole(names.RoleDefault, is4), &nbdb.LogicalRouterStaticRoute{
				IPPrefix: translate.Anywhere(is4).String(), Nexthop: via.String()}, inRouter(n, "static_routes")))
		}
	}
	return rows
}

// joinRows is the switch between the distributed router and the gateway routers, if the network has such routers.
func joinRows(m translate.Maker, n *cluster.Network, router string) ([]nb.Row, error) {
	if len(n.JoinSubnets) == 0 && !n.Hosts {
		return nil, nil
	}
	first, err := joinAddresses(n)
	if err != nil {
		return nil, err
	}
	port, peer := translate.Link{Port: names.RouterToJoin(router), Addrs: first, Peer: names.JoinToRouter(router)}.Models()
	port.ExternalIDs = map[string]string{names.KeyConnectToJoin: "yes"}
	return []nb.Row{
		m.Row(names.RoleJoin, &nbdb.LogicalSwitch{Name: n.Name.JoinSwitch()}),
		m.Row(names.RoleRouterToJoin, port, inRouter(n, "ports")),
		m.Row(names.RoleJoinToRouter, peer, m.In(nbdb.LogicalSwitchTable, names.RoleJoin, "ports")),
	}, nil
}

// policies come before the cluster router's other policies and routes. Packets to pods go where the routes by
// destination say: other policies lead out of the cluster. Packets to a ClusterIP that no load balancer took are
// dropped: no service has the address, or its service has no endpoint for that client. This needs a policy because a
// route by destination loses to a route by source with a longer prefix (ovn-nb(5), Logical_Router_Static_Route policy),
// and pods leave the cluster by such routes.
func policies(m translate.Maker, s *cluster.State, n *cluster.Network) []nb.Row {
	var rows []nb.Row
	add := func(role string, to netip.Prefix, action nbdb.LogicalRouterPolicyAction) {
		rows = append(rows, m.Row(names.PrefixRole(role, to), &nbdb.LogicalRouterPolicy{
			Priority: names.PolicyInside, Match: translate.Destination(to), Action: action,
		}, inRouter(n, "policies")))
	}
	for _, c := range n.Subnets {
		add(names.RoleInside, c.CIDR, nbdb.LogicalRouterPolicyActionAllow)
	}
	if n.Primary { // answers go back to the exit that let the question in
		for _, join := range n.JoinSubnets {
			add(names.RoleInside, join, nbdb.LogicalRouterPolicyActionAllow)
		}
	}
	if n.Services {
		for _, p := range s.ServiceRanges() {
			add(names.RoleDiscard, p, nbdb.LogicalRouterPolicyActionDrop)
		}
	}
	return rows
}

// inRouter is a slot of the row of a network's distributed router.
func inRouter(n *cluster.Network, column string) nb.Slot {
	router := nb.Ref{Table: nbdb.LogicalRouterTable, UUID: n.RouterRow(nbdb.LogicalRouterTable)}
	return nb.Slot{In: router, Column: column}
}

// inClusterRouter is a slot of the cluster router's row.
func inClusterRouter(s *cluster.State, column string) nb.Slot {
	return inRouter(s.Networks[names.Own], column)
}

// familyRole is the role of a row of which there is one per address family.
func familyRole(role string, is4 bool) string { return names.FamilyRole(role, names.FamilyOf(is4)) }

// joinAddresses lists the distributed router's addresses on the join switch: the first of each subnet.
func joinAddresses(n *cluster.Network) ([]netip.Prefix, error) { return nths(n.JoinSubnets, 1) }
