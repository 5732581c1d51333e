package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// This file has what rules need in primary networks beside what they are in the cluster's own: those of
// ClusterNetworkPolicies, and named ports of DNS.

// notInNetwork matches addresses of nodes and of names in DNS. In the network's own ranges, somebody else has them: a
// pod may choose the address of a node.
func (a ruleACLs) notInNetwork(f names.Family, sets []string) string {
	match := a.peers(f, sets...)
	network := a.state.Networks[a.network]
	if network == nil {
		return match
	}
	var rest []string
	for _, p := range ipnet.Minus(translate.Anywhere(f == names.IPv4), network.Ranges()) {
		rest = append(rest, p.String())
	}
	return match + " && " + a.peers(f, rest...)
}

// toAll matches what reaches all pods of a network, whatever its address: it would reach those that a rule denies.
// Neighbour discovery passes all ACLs.
func toAll(f names.Family) string {
	ranges := []string{"224.0.0.0/4", netip.AddrFrom4([4]byte{255, 255, 255, 255}).String()}
	if f == names.IPv6 {
		ranges = []string{"ff00::/8"}
	}
	return translate.Keyword(f) + " && (eth.mcast || " + egress().peers(f, ranges...) + ")"
}

// exitServices makes the ACLs of a rule of egress about the services that exits have, if it means what is behind them.
// The network's switch sees the ClusterIP and the port of the Service.
func (a ruleACLs) exitServices(rule cluster.PolicyRule) {
	if !a.network.Further() || rule.AnyPeer {
		return
	}
	for _, name := range cluster.ExitServices() {
		role := names.RoleAPI
		if name == cluster.DNSService() {
			role = names.RoleDNS
		}
		service := exitServiceOf(a.state, name)
		for _, f := range a.families {
			whole := rule.AnyPort && a.others(rule, f).all // the rule's own ACL has the ClusterIP, too
			if service != nil && !whole && a.means(rule, service, f) {
				a.exitService(rule, service, f, role)
			}
		}
	}
}

// namedDNS makes the ACLs of a NetworkPolicy's rule of egress about the cluster's DNS, for ports that the rule means by
// the names that pods of DNS give them. Those that it means by numbers are in the rule's own ACLs.
func (a ruleACLs) namedDNS(rule cluster.PolicyRule) {
	if a.tiered || a.dns == nil || !slices.ContainsFunc(rule.Servers(), a.dns.selected) {
		return
	}
	rule.Ports = slices.DeleteFunc(slices.Clone(rule.Ports), func(p cluster.PolicyPort) bool { return p.Name == "" })
	for _, f := range a.families {
		a.exitService(rule, a.dns, f, names.RoleDNS)
	}
}

// exitService makes the ACLs about one service in one family, if it has addresses there.
func (a ruleACLs) exitService(rule cluster.PolicyRule, service *exitService, f names.Family, role string) {
	addrs := service.clusterIPs(f)
	if len(addrs) == 0 {
		return
	}
	match := a.peers(f, addrs...)
	if rule.AnyPort {
		a.add([]string{string(f), role}, portTerm{}, match)
		return
	}
	for _, p := range cluster.Protocols() {
		if numbers := service.ports(rule, p); len(numbers) > 0 {
			term := portTerm{strings.ToLower(string(p)), ports(p, numbers)}
			a.add([]string{string(f), term.protocol, role}, term, match, term.match)
		}
	}
}

// means is true when the peers of a rule are behind a service: any pod of it, or addresses of its endpoints. Of these,
// one is enough for a rule that denies. Others open the service only if they mean all.
func (a ruleACLs) means(rule cluster.PolicyRule, service *exitService, f names.Family) bool {
	if slices.ContainsFunc(rule.PodPeers(), service.selected) {
		return true
	}
	meant, all := 0, 0
	for _, slice := range service.slices {
		for _, e := range slice.Endpoints {
			if names.FamilyOf(e.Addr.Is4()) != f {
				continue
			}
			if all++; slices.ContainsFunc(rule.Peers, func(p cluster.PolicyPeer) bool { return a.at(p, e.Addr) }) {
				meant++
			}
		}
	}
	return meant > 0 && (meant == all || a.action == nbdb.ACLActionDrop)
}

// at is true when a peer has an address: nodes, or ranges.
func (a ruleACLs) at(peer cluster.PolicyPeer, addr netip.Addr) bool {
	if peer.Nodes == nil {
		return slices.ContainsFunc(peer.Addresses, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	for _, facts := range clusterPoliciesOf(a.state).facts {
		if peer.Nodes.Selects(facts.labels) && slices.Contains(facts.addrs, addr) {
			return true
		}
	}
	return false
}

// exitsChanged is true for a change after which rules may mean other services of exits: seldom.
func exitsChanged(s *cluster.State, c cluster.Change) bool {
	if c.Granted || !s.AnyPrimary() {
		return false
	}
	of := func(o cluster.Object) bool {
		switch o := o.(type) {
		case *cluster.EndpointSlice:
			return o != nil && cluster.IsExitService(cluster.Name{Namespace: o.Name.Namespace, Name: o.Service})
		case *cluster.Node:
			return o != nil && hosts(s, o)
		}
		return false
	}
	switch c.Ref.Kind {
	case cluster.KindService:
		return cluster.IsExitService(c.Ref.Name)
	case cluster.KindEndpointSlice, cluster.KindNode:
		return of(c.Old) || of(c.New)
	}
	return dnsChanged(s, c)
}

// hosts is true for a node that has the address of an endpoint of such a service.
func hosts(s *cluster.State, n *cluster.Node) bool {
	addrs := n.Reported()
	for _, service := range cluster.ExitServices() {
		for _, slice := range s.SlicesOf(service) {
			if slices.ContainsFunc(slice.Endpoints, func(e cluster.Endpoint) bool { return slices.Contains(addrs, e.Addr) }) {
				return true
			}
		}
	}
	return false
}

// ports lists the ports of the Service of one protocol that a rule is about: by their own number, or by the number or
// name that the pods behind them know.
func (d *exitService) ports(rule cluster.PolicyRule, p cluster.Protocol) (out []cluster.PolicyPort) {
	for _, served := range d.service.Ports {
		if served.Protocol == p && slices.ContainsFunc(rule.Ports, func(of cluster.PolicyPort) bool {
			return of.Protocol == p && (covers(of, served.Port) || d.leads(served, of))
		}) {
			out = append(out, cluster.PolicyPort{Protocol: p, First: served.Port, Last: served.Port})
		}
	}
	return out
}

// leads is true when a port of the Service leads to a port of any pod that a policy means.
func (d *exitService) leads(served cluster.ServicePort, to cluster.PolicyPort) bool {
	for _, slice := range d.slices {
		for _, at := range slice.Ports {
			if at.Name != served.Name || at.Protocol != served.Protocol {
				continue
			}
			if covers(to, at.Port) || slices.ContainsFunc(d.pods, func(p *cluster.Pod) bool {
				number, ok := p.Ports.Number(cluster.PortName{Protocol: to.Protocol, Name: to.Name})
				return ok && to.Name != "" && number == at.Port
			}) {
				return true
			}
		}
	}
	return false
}

// covers is true when a policy means a port by its number.
func covers(p cluster.PolicyPort, number uint16) bool {
	return p.Name == "" && (p.First == 0 || p.First <= number && number <= p.Last)
}
