package index

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// HealthSource is the subject of topics about a pod that gained or lost the address from which OVN checks endpoints
// (cluster.HealthSource); the key is the pod.
const HealthSource cluster.Subject = "health check source"

// HealthChecks answers which Services OVN checks the endpoints of, and from which addresses.
type HealthChecks struct {
	checked cluster.NameSet
	holders map[netip.Addr]cluster.Name // the pod that has a HealthSource
	before  []netip.Addr                // the HealthSources of the pod, as they were before it changed
}

func newHealthChecks() *HealthChecks {
	return &HealthChecks{checked: cluster.NameSet{}, holders: map[netip.Addr]cluster.Name{}}
}

// HealthChecksOf is the index of a State.
func HealthChecksOf(s *cluster.State) *HealthChecks { return of(s, newHealthChecks) }

// Kinds implements cluster.Index.
func (*HealthChecks) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindService, cluster.KindPod}
}

// Before implements cluster.Index.
func (h *HealthChecks) Before(s *cluster.State, r cluster.Ref) {
	if r.Kind == cluster.KindService {
		return
	}
	h.before = sources(s, r.Name)
	for _, a := range h.before {
		delete(h.holders, a)
	}
}

// After implements cluster.Index.
func (h *HealthChecks) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	if r.Kind == cluster.KindService {
		svc := s.Services[r.Name]
		h.checked.Put(r.Name, svc != nil && svc.HealthCheck.Interval > 0)
		return nil
	}
	before, after := h.before, sources(s, r.Name)
	for _, a := range after {
		h.holders[a] = r.Name
	}
	if slices.Equal(before, after) {
		return nil
	}
	return topics(HealthSource, r.Name)
}

// sources lists the addresses of a pod that are the HealthSource of their subnet.
func sources(s *cluster.State, pod cluster.Name) []netip.Addr {
	var out []netip.Addr
	for _, ip := range s.PodNetworks[cluster.PodPort{Pod: pod}].IPs {
		if source, ok := cluster.HealthSource(ip.Masked()); ok && source == ip.Addr() {
			out = append(out, source)
		}
	}
	return out
}

// SourceHolder is the pod that has the HealthSource of a node subnet. An older version granted the address, and the pod
// keeps it. While it does, OVN checks no endpoints in the subnet.
func (h *HealthChecks) SourceHolder(subnet netip.Prefix) (pod cluster.Name, held bool) {
	if source, ok := cluster.HealthSource(subnet); ok {
		pod, held = h.holders[source]
	}
	return pod, held
}

// Probe is how OVN checks an endpoint: at the logical port of a pod, from an address of the same subnet.
type Probe struct {
	Pod    cluster.Name
	Source netip.Addr
}

// ProbeOf is how an endpoint of a namespace is checked. ok is false for an endpoint that can't be checked: it is no
// pod, its address is not in the node's subnets (host network), or a pod has the address that checks would come from.
func (h *HealthChecks) ProbeOf(s *cluster.State, namespace string, e cluster.Endpoint) (p Probe, ok bool) {
	if e.Pod == "" {
		return Probe{}, false
	}
	subnets := s.NodeSubnets[e.Node]
	i := slices.IndexFunc(subnets, func(p netip.Prefix) bool { return p.Contains(e.Addr) })
	if i < 0 {
		return Probe{}, false
	}
	source, ok := cluster.HealthSource(subnets[i])
	if _, held := h.SourceHolder(subnets[i]); held {
		return Probe{}, false
	}
	return Probe{cluster.Name{Namespace: namespace, Name: e.Pod}, source}, ok
}

// Checked lists the Services with a health check, in no order.
func (h *HealthChecks) Checked() []cluster.Name { return h.checked.List() }

// CheckedOn lists those of Checked that have endpoints on a node, in no order.
func (h *HealthChecks) CheckedOn(s *cluster.State, node string) []cluster.Name {
	return withEndpointsOn(s, node, h.checked)
}
