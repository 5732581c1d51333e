package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// This file has what rules of ClusterNetworkPolicies need in primary networks beside what they are in the cluster's
// own.

// notInNetwork matches addresses of nodes and of names in DNS. In the network's own ranges, somebody else has them: a
// pod may choose the address of a node.
func (a ruleACLs) notInNetwork(f names.Family, sets []string) string {
	match := a.peers(f, sets...)
	network := a.state.Networks[a.network]
	if network == nil {
		return match
	}
	var inside []netip.Prefix
	for _, s := range network.Subnets {
		inside = append(inside, s.CIDR)
	}
	var rest []string
	for _, p := range ipnet.Minus(translate.Anywhere(f == names.IPv4), inside) {
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

// clusterDNS makes the ACLs of a rule of egress about the cluster's DNS, if it selects any pod behind that. The
// network's switch sees the ClusterIP and the port of the Service.
func (a ruleACLs) clusterDNS(rule cluster.PolicyRule) {
	for _, f := range a.families {
		var addrs []string
		for _, p := range rule.PodPeers() {
			addrs = append(addrs, a.dns.of(p, f)...)
		}
		if len(addrs) == 0 {
			continue
		}
		slices.Sort(addrs)
		match := a.peers(f, slices.Compact(addrs)...)
		if rule.AnyPort {
			a.add([]string{string(f), names.RoleDNS}, portTerm{}, match)
			continue
		}
		for _, p := range cluster.Protocols() {
			if numbers := a.dns.ports(rule, p); len(numbers) > 0 {
				term := portTerm{strings.ToLower(string(p)), ports(p, numbers)}
				a.add([]string{string(f), term.protocol, names.RoleDNS}, term, match, term.match)
			}
		}
	}
}

// ports lists the ports of the Service of one protocol that a rule is about: by their own number, or by the number or
// name that the pods behind them know.
func (d *clusterDNS) ports(rule cluster.PolicyRule, p cluster.Protocol) (out []cluster.PolicyPort) {
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
func (d *clusterDNS) leads(served cluster.ServicePort, to cluster.PolicyPort) bool {
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
