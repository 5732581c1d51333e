package translate_test

import (
	"fmt"
	"maps"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// labels is a set of up to two labels.
func (p *path) labels() cluster.Labels {
	out := map[string]string{}
	for _, k := range []string{"a", "b"} {
		if p.chance(60) {
			out[k] = fmt.Sprint(p.r.IntN(2))
		}
	}
	if p.chance(30) { // a virtual machine, which may have two pods
		out[annotation.MachineLabel] = fmt.Sprint(p.r.IntN(2))
	}
	return cluster.NewLabels(out)
}

// namespaceLabels are those of a namespace, whose pods may be in a primary network.
func (p *path) namespaceLabels() cluster.Labels {
	out := maps.Collect(p.labels().All())
	if p.chance(30) || p.primary && p.chance(90) {
		out[names.PrimaryLabel] = ""
	}
	return cluster.NewLabels(out)
}

// selector is a selector of such labels.
func (p *path) selector() cluster.LabelSelector {
	var out []cluster.Requirement
	for _, k := range []string{"a", "b"} {
		r := cluster.Requirement{Key: k, Operator: []cluster.Operator{cluster.In, cluster.NotIn, cluster.Exists,
			cluster.DoesNotExist}[p.r.IntN(4)]}
		if r.Operator == cluster.In || r.Operator == cluster.NotIn {
			r.Values = []string{fmt.Sprint(p.r.IntN(2))}
		}
		if p.chance(40) {
			out = append(out, r)
		}
	}
	return cluster.NewLabelSelector(out...)
}

func (p *path) policy() cluster.Object {
	n := &cluster.NetworkPolicy{Name: p.name("np", 5), UID: p.uid(), Pods: p.selector()}
	if old, ok := p.objects[n.Ref()].(*cluster.NetworkPolicy); ok && p.chance(80) {
		n.UID = old.UID
	}
	for _, d := range []*cluster.PolicyRules{&n.Ingress, &n.Egress} {
		if d.Isolates = p.chance(70); d.Isolates {
			for range p.r.IntN(3) {
				d.Rules = append(d.Rules, p.rule(n.Name.Namespace))
			}
		}
	}
	return n
}

// clusterPolicy is one of a few ClusterNetworkPolicies, which often have the same priority.
func (p *path) clusterPolicy() cluster.Object {
	n := &cluster.TieredPolicy{Name: fmt.Sprintf("cnp%d", p.r.IntN(4)), UID: p.uid(), Created: p.clock,
		Logging: p.logging(), Tier: []cluster.PolicyTier{cluster.AdminTier, cluster.BaselineTier}[p.r.IntN(2)],
		Priority: p.r.IntN(3), Pods: cluster.PodSelector{Namespaces: p.selector(), Pods: p.selector()}}
	if old, ok := p.objects[n.Ref()].(*cluster.TieredPolicy); ok && p.chance(80) {
		n.UID, n.Created = old.UID, old.Created
	}
	for _, d := range []*[]cluster.TieredRule{&n.Ingress, &n.Egress} {
		for range p.r.IntN(3) {
			r := cluster.TieredRule{PolicyRule: p.rule("ns0"), Name: []string{"", "a"}[p.r.IntN(2)],
				Action: []cluster.PolicyAction{cluster.Accept, cluster.Deny, cluster.Pass}[p.r.IntN(3)]}
			if d == &n.Egress && p.chance(40) {
				nodes := p.selector()
				r.Peers = append(r.Peers, cluster.PolicyPeer{Nodes: &nodes})
			}
			if d == &n.Egress && r.Action == cluster.Accept && p.chance(60) {
				r.Peers = append(r.Peers, cluster.PolicyPeer{Domain: p.domain()})
			}
			*d = append(*d, r)
		}
	}
	return n
}

func (p *path) domain() string { return []string{"a.example", "b.example", "c.example"}[p.r.IntN(3)] }

// domainName is what DNS says of a name: addresses of others, of nodes, of the API server and of pods.
func (p *path) domainName() cluster.Object {
	var addrs []netip.Addr
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "172.18.0.7", "172.18.0.8", "fc00::9", "10.0.0.5",
		"10.97.0.1", "172.18.0.9"} {
		if p.chance(40) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
	}
	return cluster.NewDomainName(p.domain(), addrs, []string{"", "DNS knows no such name"}[p.r.IntN(2)])
}

func (p *path) rule(namespace string) cluster.PolicyRule {
	r := cluster.PolicyRule{AnyPeer: p.chance(20), AnyPort: p.chance(30)}
	for range p.r.IntN(3) {
		switch p.r.IntN(3) {
		case 0:
			r.Peers = append(r.Peers, cluster.PolicyPeer{Pods: &cluster.PodSelector{Namespace: namespace, Pods: p.selector()}})
		case 1:
			r.Peers = append(r.Peers, cluster.PolicyPeer{Pods: &cluster.PodSelector{Namespaces: p.selector(),
				Pods: p.selector()}})
		case 2:
			r.Peers = append(r.Peers, cluster.PolicyPeer{Addresses: []netip.Prefix{
				netip.MustParsePrefix([]string{"192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0"}[p.r.IntN(3)])}})
		}
	}
	for _, port := range []cluster.PolicyPort{{Protocol: cluster.TCP, First: 80, Last: 80},
		{Protocol: cluster.TCP, Name: "web"}, {Protocol: cluster.UDP, Name: "dns"}, {Protocol: cluster.UDP},
		{Protocol: cluster.SCTP, First: 5, Last: 9}} {
		if p.chance(40) {
			r.Ports = append(r.Ports, port)
		}
	}
	return r
}
