package cluster

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// firstPodAddr is the number of the first address of pods in a node subnet:
// before it are the router's and the management port's.
const firstPodAddr = 3

// HealthSource is the address of a node subnet from which OVN checks the
// endpoints there: the last one, or of IPv4 the last before the broadcast
// address. It is to be nobody's (but see SourceHolder): a pod with it would not
// be reached while there are checks, and neither would the router, whose address
// works here until it is asked for its MAC. ok is false for a subnet without room
// for it.
func HealthSource(subnet netip.Prefix) (a netip.Addr, ok bool) {
	n := min(ipnet.Size(subnet)-1, ipnet.MaxNumber)
	if subnet.Addr().Is4() && n > 0 {
		n--
	}
	if n < firstPodAddr {
		return netip.Addr{}, false
	}
	return ipnet.Nth(subnet, n)
}

// SourceHolder is the pod that has the HealthSource of a node subnet: it was given
// that address before it was kept for checks, and stays what it is. Endpoints in
// the subnet are not checked meanwhile.
func (s *State) SourceHolder(subnet netip.Prefix) (pod Name, held bool) {
	if source, ok := HealthSource(subnet); ok {
		pod, held = s.sourceHolders[source]
	}
	return pod, held
}

// holdSources notes that a pod of such an attachment has a HealthSource, or has
// it no longer, and tells whether there is one among its addresses.
func (s *State) holdSources(pod Name, n annotation.PodNetwork, held bool) (any bool) {
	for _, ip := range n.IPs {
		source, ok := HealthSource(ip.Masked())
		if !ok || source != ip.Addr() {
			continue
		}
		any = true
		if held {
			s.sourceHolders[source] = pod
		} else {
			delete(s.sourceHolders, source)
		}
	}
	return any
}

// Probe is where an endpoint is checked: by the node of this logical port's
// chassis, from an address of the same subnet.
type Probe struct {
	Pod    Name
	Source netip.Addr
}

// ProbeOf is how an endpoint of a namespace is checked. ok is false for one that
// can't be: it is not a pod's, or not in the pod subnets of its node, as pods on
// the host network are, or some pod has the address that checks would come from.
func (s *State) ProbeOf(namespace string, e Endpoint) (p Probe, ok bool) {
	if e.Pod == "" {
		return Probe{}, false
	}
	subnets := s.NodeSubnets[e.Node]
	i := slices.IndexFunc(subnets, func(p netip.Prefix) bool { return p.Contains(e.Addr) })
	if i < 0 {
		return Probe{}, false
	}
	source, ok := HealthSource(subnets[i])
	if _, held := s.SourceHolder(subnets[i]); held {
		return Probe{}, false
	}
	return Probe{Name{namespace, e.Pod}, source}, ok
}

// Checked lists the services with a health check, in no order.
func (s *State) Checked() []Name { return slices.Collect(maps.Keys(s.checkedServices)) }

// CheckedOn lists the services with a health check that have endpoints on a
// node, in no order.
func (s *State) CheckedOn(node string) []Name { return s.withEndpointsOn(node, s.checkedServices) }

// withEndpointsOn lists those of the services that have endpoints on a node.
func (s *State) withEndpointsOn(node string, services set) []Name {
	var out []Name
	for svc := range services {
		for slice := range s.slicesByService[svc] {
			if slices.ContainsFunc(s.Slices[slice].Endpoints, func(e Endpoint) bool { return e.Node == node }) {
				out = append(out, svc)
				break
			}
		}
	}
	return out
}
