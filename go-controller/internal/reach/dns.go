package reach

import (
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// dnsPort is where DNS answers, over UDP first of all.
const dnsPort = 53

// dns warns when pods of the policy can ask no DNS server that is known. With onlyKnown it does not warn where the
// cluster's DNS service is not known.
func (w warner) dns(onlyKnown bool) {
	for _, p := range slices.SortedFunc(maps.Values(w.State.Pods), func(a, b *cluster.Pod) int {
		return cluster.CompareNames(a.Name, b.Name)
	}) {
		if p.HostNetwork || !selects(w.State, w.subject, p) {
			continue
		}
		from, err := w.podEnds(p.Name)
		if err != nil {
			continue
		}
		if resolves, known := w.resolves(p, from); !resolves && (known || !onlyKnown) {
			w.warn("spec.egress", "no rule allows DNS (%d/UDP) to pods such as %s, which can't resolve names", dnsPort,
				strings.TrimPrefix(from[0].Name, "pod/"))
			return
		}
	}
}

// selectsDNS is true when a selector selects a pod of the cluster's DNS. In a primary network it is about the
// ClusterIPs then.
func (c *Cluster) selectsDNS(s cluster.PodSelector) bool {
	service := cluster.DNSService()
	for _, slice := range c.State.SlicesOf(service) {
		for _, e := range slice.Endpoints {
			p := c.State.Pods[cluster.Name{Namespace: service.Namespace, Name: e.Pod}]
			if p != nil && p.WantsNetwork() && selects(c.State, s, p) {
				return true
			}
		}
	}
	return false
}

// resolves is true when a pod may ask the cluster's DNS service. Where none is known, it is true when any rule allows
// DNS, and otherwise when a rule allows DNS to addresses: they may be a server's.
func (w warner) resolves(p *cluster.Pod, from []End) (out, known bool) {
	service := cluster.DNSService()
	port := Asked{Number: dnsPort, Protocol: cluster.UDP}
	ways, err := w.toService(from, Question{To: Side{Kind: Service, Name: service}, Port: port})
	for _, way := range ways {
		known = known || err == nil && way.refused == ""
		if set, err := w.allowed(way); err == nil && way.refused == "" && set.size() > 0 {
			return true, known
		}
	}
	dns := cluster.PolicyRule{Ports: []cluster.PolicyPort{{Protocol: cluster.UDP, First: dnsPort, Last: dnsPort}}}
	return slices.ContainsFunc(w.allowing(p), func(r cluster.PolicyRule) bool {
		named := slices.ContainsFunc(r.PortNames(), func(n cluster.PortName) bool { return n.Protocol == cluster.UDP })
		byAddress := r.AnyPeer || slices.ContainsFunc(r.Peers, func(p cluster.PolicyPeer) bool { return p.Pods == nil })
		return (!known || byAddress) && (named || covers(r, dns))
	}), known
}

// allowing lists the rules of egress that allow connections of a pod, or would if no other rule denied them.
func (w warner) allowing(p *cluster.Pod) []cluster.PolicyRule {
	var out []cluster.PolicyRule
	isolated := false
	for _, np := range w.selecting(p) {
		isolated = isolated || np.Egress.Isolates
		out = append(out, rulesOf(np, egress)...)
	}
	for _, q := range w.ordering(p) {
		for _, r := range q.Egress {
			if r.Action == cluster.Accept && (q.Tier == cluster.AdminTier || !isolated) {
				out = append(out, r.PolicyRule)
			}
		}
	}
	return out
}
