package topology

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Cluster translates what exists once: router, join switch, load balancer
// group.
type Cluster struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Cluster) Kind() names.Kind { return names.KindCluster }

func clusterOwner() nb.Owner { return nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner} }

// Owners implements translate.Translator: there is one cluster.
func (Cluster) Owners(*cluster.State) []nb.Owner { return []nb.Owner{clusterOwner()} }

// Depends implements translate.Translator. The configuration, which shapes these
// rows too, does not change while the program runs.
func (Cluster) Depends() translate.Dependencies {
	return translate.Dependencies{Kinds: []cluster.Kind{cluster.KindServiceCIDR}}
}

// Affected implements translate.Translator.
func (t Cluster) Affected(s *cluster.State, _ cluster.Change) []nb.Owner { return t.Owners(s) }

// Rows implements translate.Translator.
func (t Cluster) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	if o != clusterOwner() {
		return translate.Rows{}, nil
	}
	name := s.Config.RouterName
	key := func(table, role string) nb.Key { return nb.Key{Table: table, Owner: o, Role: role} }
	router, join := routerRef(s), nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: names.ClusterRow(nbdb.LogicalSwitchTable, names.RoleJoin)}
	first, err := joinAddresses(s)
	if err != nil {
		return translate.Rows{}, err
	}
	mac := ipnet.MACFor(ipnet.Addrs(first)).String()
	return translate.Rows{Rows: append([]nb.Row{
		t.Schema.NewRow(key(nbdb.LogicalRouterTable, names.RoleRouter), &nbdb.LogicalRouter{
			UUID: router.UUID, Name: name, Options: routerOptions(),
			ExternalIDs: map[string]string{names.KeyClusterRouter: "yes",
				names.SubnetsKey: config.SubnetList(s.Config.Subnets), names.JoinKey: config.PrefixList(s.Config.JoinSubnets)},
		}),
		t.Schema.NewRow(key(nbdb.LogicalSwitchTable, names.RoleJoin), &nbdb.LogicalSwitch{UUID: join.UUID, Name: names.JoinSwitch}),
		t.Schema.NewRow(key(nbdb.LogicalRouterPortTable, names.RoleRouterToJoin), &nbdb.LogicalRouterPort{
			UUID: names.ClusterRow(nbdb.LogicalRouterPortTable, names.RoleRouterToJoin), Name: names.RouterToJoin(name),
			MAC: mac, Networks: texts(first), ExternalIDs: map[string]string{names.KeyConnectToJoin: "yes"},
		}, nb.Slot{In: router, Column: "ports"}),
		t.Schema.NewRow(key(nbdb.LogicalSwitchPortTable, names.RoleJoinToRouter), &nbdb.LogicalSwitchPort{
			UUID: names.ClusterRow(nbdb.LogicalSwitchPortTable, names.RoleJoinToRouter), Name: names.JoinToRouter(name),
			Type: "router", Addresses: []string{mac}, Options: map[string]string{"router-port": names.RouterToJoin(name)},
		}, nb.Slot{In: join, Column: "ports"}),
		t.Schema.NewRow(key(nbdb.LoadBalancerGroupTable, names.RoleLBGroup), &nbdb.LoadBalancerGroup{
			UUID: names.ClusterRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup), Name: names.ClusterLBGroup,
		}),
	}, t.policies(s)...)}, nil
}

// policies come before the cluster router's others. What is addressed to a pod
// goes where the routes say: others lead out of the cluster. What is addressed to
// a ClusterIP and no load balancer took is dropped: it belongs to no service, or
// to one that has no endpoint for clients on that node. That is a policy because a
// route by destination loses to one by source of a longer prefix (ovn-nb(5),
// Logical_Router_Static_Route policy), and pods leave by such.
func (t Cluster) policies(s *cluster.State) []nb.Row {
	var rows []nb.Row
	add := func(role string, to netip.Prefix, action nbdb.LogicalRouterPolicyAction) {
		role = names.PrefixRole(role, to)
		rows = append(rows, t.Schema.NewRow(nb.Key{Table: nbdb.LogicalRouterPolicyTable, Owner: clusterOwner(), Role: role}, &nbdb.LogicalRouterPolicy{
			UUID: names.ClusterRow(nbdb.LogicalRouterPolicyTable, role), Priority: names.PolicyInside, Match: destination(to), Action: action,
		}, nb.Slot{In: routerRef(s), Column: "policies"}))
	}
	for _, c := range s.Config.Subnets {
		add(names.RoleInside, c.CIDR, nbdb.LogicalRouterPolicyActionAllow)
	}
	for _, p := range s.ServiceRanges() {
		add(names.RoleDiscard, p, nbdb.LogicalRouterPolicyActionDrop)
	}
	return rows
}

// routerOptions make the router learn neighbours when it needs them, instead
// of from every ARP it sees and of holding a flow per pair of router ports:
// both are quadratic in the number of nodes (ovn-nb(5), Logical_Router).
func routerOptions() map[string]string {
	return map[string]string{"always_learn_from_arp_request": "false", "dynamic_neigh_routers": "true"}
}

// routerRef is the cluster router's row: one that was there already, or ours.
func routerRef(s *cluster.State) nb.Ref {
	return nb.Ref{Table: nbdb.LogicalRouterTable, UUID: s.ClusterRouter(nbdb.LogicalRouterTable)}
}

// joinAddresses is the router's address in the join subnet of each family that
// pods have: the first.
func joinAddresses(s *cluster.State) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, p := range s.Config.JoinSubnets {
		if v4 := p.Addr().Is4(); v4 && !s.Config.HasIPv4() || !v4 && !s.Config.HasIPv6() {
			continue
		}
		a, err := nth(p, 1)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	ipnet.Sort(out)
	return out, nil
}
