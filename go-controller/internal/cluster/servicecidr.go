package cluster

import (
	"net/netip"
	"slices"
)

// ServiceCIDR is ranges of ClusterIPs besides the configured ones (Kubernetes API, networking.k8s.io/v1 ServiceCIDR).
type ServiceCIDR struct {
	Name  string
	CIDRs []netip.Prefix // of either family, sorted
}

// Ref implements Object.
func (c *ServiceCIDR) Ref() Ref { return Ref{KindServiceCIDR, Name{Name: c.Name}} }

// Equal implements Object.
func (c *ServiceCIDR) Equal(o Object) bool {
	d, ok := o.(*ServiceCIDR)
	return ok && c.Name == d.Name && slices.Equal(c.CIDRs, d.CIDRs)
}

// ServiceRanges lists all ranges of ClusterIPs, configured and from the API, sorted, each once.
func (s *State) ServiceRanges() []netip.Prefix {
	out := slices.Clone(s.Config.ServiceCIDRs)
	for _, c := range s.ServiceCIDRs {
		out = append(out, c.CIDRs...)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}
