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

// Gateway translates gateways: nodes through which packets leave the cluster.
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
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindNode}, Subjects: []cluster.Subject{index.GatewayInService, index.GatewayAddress},
	}
}

// Affected implements translate.Translator. While no gateway of a family works, packets leave through all of them. So
// the first one that works again, and the loss of the last, concern all gateways.
func (t Gateway) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	if isGateway(c.Old) || isGateway(c.New) {
		out = append(out, gatewayOwner(c.Ref.Name.Name))
	}
	if c.Concerns(index.GatewayInService) {
		return append(slices.DeleteFunc(t.Owners(s), func(o nb.Owner) bool { return slices.Contains(out, o) }), out...)
	}
	for _, other := range append(c.About(index.GatewayAddress), c.About(index.NodeChassis)...) {
		if n := s.Nodes[other.Name]; n != nil && n.Gateway != nil {
			out = append(out, gatewayOwner(other.Name))
		}
	}
	return append(out, othersWithPins(s, c)...)
}

func gatewayOwner(node string) nb.Owner { return nb.Owner{Kind: names.KindGateway, Name: node} }

func isGateway(o cluster.Object) bool {
	n, ok := o.(*cluster.Node)
	return ok && n.Gateway != nil
}

// Rows implements translate.Translator.
func (t Gateway) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	out := translate.Rows{Reports: append(refusedClaims(s, o.Name), lostAddresses(s, o.Name)...)}
	gateways := index.GatewaysOf(s)
	n, gateway, join := s.Nodes[o.Name], gateways.Of(s, o.Name), s.JoinAddrs[o.Name]
	if gateway == nil || len(join) == 0 {
		return out, nil
	}
	clusterRouter, err := joinAddresses(s.Networks[names.Own])
	if err != nil {
		return out, err
	}
	r := gatewayRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: n.UID},
		node:  n, gateway: gateway, state: s, gateways: gateways, join: join, clusterRouter: ipnet.Addrs(clusterRouter),
	}
	node, err := r.routesToNode()
	if err != nil {
		return out, err
	}
	out.Rows = slices.Concat(r.router(), r.external(), r.routes(), r.pins(), []nb.Row{r.leakGuard()}, node)
	return out, nil
}

// gatewayRows makes the rows of one gateway.
type gatewayRows struct {
	translate.Maker
	node          *cluster.Node
	gateway       *annotation.L3Gateway
	state         *cluster.State
	gateways      *index.Gateways
	join          []netip.Prefix // of the gateway router on the join switch
	clusterRouter []netip.Addr   // of the cluster router there
}

func (r gatewayRows) chassis() string { return index.ChassisOf(r.state).Of(r.node.Name) }

// router is the gateway router, bound to the node's chassis, and its link to the join switch.
func (r gatewayRows) router() []nb.Row {
	name := names.GatewayRouter(r.node.Name)
	options := translate.RouterOptions()
	options["chassis"] = r.chassis()
	options["lb_force_snat_ip"] = strings.Join(texts(ipnet.Addrs(r.join)), " ")
	ids := map[string]string{names.KeyPhysicalIP: r.gateway.IPs[0].Addr().String()}
	if len(r.gateway.IPs) > 1 {
		ids[names.KeyPhysicalIPs] = strings.Join(texts(ipnet.Addrs(r.gateway.IPs)), ",")
	}
	port, peer := translate.Link{Port: names.RouterToJoin(name), Addrs: r.join, Peer: names.JoinToRouter(name)}.Models()
	port.ExternalIDs, port.Options = map[string]string{names.KeyConnectToJoin: "yes"}, gatewayMTU(r.gateway.PodMTU)
	joinSwitch := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: names.ClusterRow(nbdb.LogicalSwitchTable, names.RoleJoin)}
	return []nb.Row{
		r.Row(names.RoleRouter, &nbdb.LogicalRouter{Name: name, Options: options, ExternalIDs: ids}),
		r.Row(names.RoleRouterToJoin, port, r.inRouter("ports")),
		r.Row(names.RoleJoinToRouter, peer, nb.Slot{In: joinSwitch, Column: "ports"}),
	}
}

func (r gatewayRows) inRouter(column string) nb.Slot {
	return r.In(nbdb.LogicalRouterTable, names.RoleRouter, column)
}

// gatewayMTU makes a router port tell the senders of packets that are too large for what is behind the port, instead of
// sending the packets on. The MTU is in bytes of IP (ovn-nb(5), Logical_Router_Port options:gateway_mtu).
func gatewayMTU(mtu int) map[string]string {
	if mtu == 0 {
		return nil
	}
	return map[string]string{"gateway_mtu": strconv.Itoa(mtu)}
}

// external is the switch between the gateway router and the node's bridge.
func (r gatewayRows) external() []nb.Row {
	node := r.node.Name
	inSwitch := r.In(nbdb.LogicalSwitchTable, names.RoleExternal, "ports")
	localnet := &nbdb.LogicalSwitchPort{
		Name: r.gateway.Port, Type: "localnet", Addresses: []string{"unknown"},
		Options: map[string]string{"network_name": r.gateway.Network},
	}
	if r.gateway.Bridge == names.IntegrationBridge { // the NIC is a port of the integration bridge, as a pod's
		localnet.Type, localnet.Options = "", map[string]string{"requested-chassis": r.chassis()}
	}
	if r.gateway.VLAN != 0 {
		vlan := r.gateway.VLAN
		localnet.Tag = &vlan
	}
	port, peer := translate.Link{Port: names.RouterToExternal(node), Addrs: r.gateway.IPs,
		Peer: names.ExternalToRouter(node), MAC: r.gateway.MAC.String()}.Models()
	port.ExternalIDs, port.Options = map[string]string{names.KeyPhysicalPort: "yes"}, gatewayMTU(r.gateway.MTU)
	return []nb.Row{
		r.Row(names.RoleExternal, &nbdb.LogicalSwitch{Name: names.ExternalSwitch(node)}),
		r.Row(names.RoleLocalnet, localnet, inSwitch),
		r.Row(names.RoleRouterToOut, port, r.inRouter("ports")),
		r.Row(names.RoleOutToRouter, peer, inSwitch),
	}
}
