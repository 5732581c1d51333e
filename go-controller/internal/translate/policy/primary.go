package policy

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// waiting reports that a policy has no effect, since its pods wait for a primary network, and why they do.
func waiting(p *cluster.NetworkPolicy, why string) []cluster.Problem {
	return []cluster.Problem{{Ref: p.Ref(), UID: p.UID, Reason: ReasonNoNetwork,
		Message: why + ": its pods wait for it, and the policy has no effect until then"}}
}

// exitService is the cluster's DNS or the Kubernetes API, as policies of a primary network see it. A load balancer of
// the network's exit chooses the endpoint: the network's own switch sees the ClusterIP.
type exitService struct {
	state   *cluster.State
	service *cluster.Service
	slices  []*cluster.EndpointSlice
	pods    []*cluster.Pod // behind it
}

// dnsIn is the cluster's DNS as policies of a network see it; nil where they do not: it is primary for those that do.
func dnsIn(s *cluster.State, primary bool) *exitService {
	if !primary {
		return nil
	}
	return exitServiceOf(s, cluster.DNSService())
}

// exitServiceOf is one of the services that exits have; nil where there is none.
func exitServiceOf(s *cluster.State, name cluster.Name) *exitService {
	svc := s.Services[name]
	if svc == nil {
		return nil
	}
	out := &exitService{state: s, service: svc, slices: s.SlicesOf(name)}
	for _, slice := range out.slices {
		for _, e := range slice.Endpoints {
			p := s.Pods[cluster.Name{Namespace: slice.Name.Namespace, Name: e.Pod}]
			if p != nil && p.WantsNetwork() && !slices.Contains(out.pods, p) {
				out.pods = append(out.pods, p)
			}
		}
	}
	return out
}

// of lists the ClusterIPs of one family if a selector selects any of the pods behind them.
func (d *exitService) of(selector cluster.PodSelector, f names.Family) []string {
	if d == nil || !d.selected(selector) {
		return nil
	}
	return d.clusterIPs(f)
}

// selected is true when a selector selects any of the pods behind the service.
func (d *exitService) selected(selector cluster.PodSelector) bool {
	return slices.ContainsFunc(d.pods, func(p *cluster.Pod) bool {
		namespace := p.Name.Namespace
		return selector.In(namespace, d.state.Namespaces[namespace]) && selector.Pods.Selects(p.Labels)
	})
}

// clusterIPs lists those of one family.
func (d *exitService) clusterIPs(f names.Family) (out []string) {
	for _, a := range d.service.ClusterIPs {
		if names.FamilyOf(a.Is4()) == f {
			out = append(out, a.String())
		}
	}
	return out
}

// dnsKinds lists the kinds of objects on which the cluster's DNS depends, besides the definitions of networks.
func dnsKinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindService, cluster.KindEndpointSlice, cluster.KindPod, cluster.KindNamespace}
}

// dnsChanged is true for a change after which policies of primary networks may see another DNS: seldom.
func dnsChanged(s *cluster.State, c cluster.Change) bool {
	if c.Granted || !s.AnyPrimary() {
		return false
	}
	dns := cluster.DNSService()
	switch c.Ref.Kind {
	case cluster.KindService:
		return c.Ref.Name == dns
	case cluster.KindNamespace:
		return c.Ref.Name.Name == dns.Namespace
	case cluster.KindEndpointSlice:
		return ofDNS(c.Old) || ofDNS(c.New)
	case cluster.KindPod:
		return c.Ref.Name.Namespace == dns.Namespace && !sameBackend(c.Old, c.New)
	}
	return false
}

// ofDNS is true for a slice of the endpoints of the cluster's DNS.
func ofDNS(o cluster.Object) bool {
	slice, ok := o.(*cluster.EndpointSlice)
	return ok && cluster.Name{Namespace: slice.Name.Namespace, Name: slice.Service} == cluster.DNSService()
}

// sameBackend is true when two states of a pod are the same behind a service, as far as selectors see it.
func sameBackend(a, b cluster.Object) bool {
	p, was := a.(*cluster.Pod)
	q, is := b.(*cluster.Pod)
	return was && is && p.Labels == q.Labels && p.Ports == q.Ports && p.WantsNetwork() == q.WantsNetwork()
}
