package byhand

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/nbrecord"
)

// unreported is the nodes that only the database has. Without an API server these are
// Kubernetes' nodes. What they hold is not free.
func (n *northbound) unreported() []*cluster.Node {
	view := n.session.View()
	var out []*cluster.Node
	for _, o := range n.sortedOwners() {
		if o.Kind != names.KindNode || o.Name == n.Node.Name || n.core.State.Nodes[o.Name] != nil {
			continue
		}
		node := &cluster.Node{Name: o.Name, UID: "unknown"}
		for _, ref := range view.Owned(o) {
			if ls, ok := view.Row(ref).(*nbdb.LogicalSwitch); ok {
				node.Annotated = annotation.MarshalNodeSubnets(nbrecord.SwitchSubnets(ls))
				node.Zone = zoneOf(view, ls)
			}
		}
		for _, ref := range view.Owned(nb.Owner{Kind: names.KindGateway, Name: o.Name}) {
			if p, ok := view.Row(ref).(*nbdb.LogicalRouterPort); ok && p.ExternalIDs[names.KeyConnectToJoin] == "yes" {
				join := ipnet.Prefixes(p.Networks)
				node.JoinAnnotated = annotation.MarshalGatewayJoinAddrs(join)
				// As far as is known, packets of these families leave.
				node.Gateway = &annotation.L3Gateway{NextHops: ipnet.Addrs(join)}
			}
		}
		out = append(out, node)
	}
	return out
}

// zoneOf is the zone of a node's switch, by the load balancer group that it carries; ""
// for none.
func zoneOf(view nb.View, ls *nbdb.LogicalSwitch) string {
	for _, group := range ls.LoadBalancerGroup {
		if g, ok := view.Row(nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: group}).(*nbdb.LoadBalancerGroup); ok {
			if kind, owner, _, ok := names.LBGroupOwner(g.Name); ok && kind == names.KindZone {
				return names.OwnedZone(owner)
			}
		}
	}
	return ""
}

// recall takes the ranges that the cluster was made with. It is an error to give
// others.
func (n *northbound) recall() error {
	recorded, join := n.session.ClusterRecord()
	if recorded == "" {
		return nil
	}
	subnets, err := config.ParseClusterSubnets(recorded)
	if err != nil {
		return fmt.Errorf("reading %s of the cluster router: %w", names.SubnetsKey, err)
	}
	ranges := func(list []config.ClusterSubnet) (out []netip.Prefix) {
		for _, c := range list {
			out = append(out, c.CIDR)
		}
		ipnet.Sort(out)
		return out
	}
	if given := ranges(n.Cluster.Subnets); len(given) > 0 && !slices.Equal(given, ranges(subnets)) {
		return fmt.Errorf("--cluster-ip-subnet %s: the cluster was made with %s: give that", config.PrefixList(given),
			config.PrefixList(ranges(subnets)))
	}
	n.Cluster.Subnets = subnets
	if n.Cluster.JoinSubnets, err = config.ParsePrefixes(names.JoinKey+" of the cluster router", join); err != nil {
		return err
	}
	return nil
}

// serviceRanges is the ranges of ClusterIPs that the cluster's rows are for. The
// policies that drop packets to unused ClusterIPs have them in their marks. Without
// such a row they are this command's.
func (n *northbound) serviceRanges() []netip.Prefix {
	view := n.session.View()
	var out []netip.Prefix
	for _, ref := range view.Owned(nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner}) {
		k, _ := n.core.Schema.Mark(view.Row(ref))
		text, is := strings.CutPrefix(k.Role, names.RoleDiscard+"-")
		if p, err := netip.ParsePrefix(text); is && err == nil {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return n.Cluster.ServiceCIDRs
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}
