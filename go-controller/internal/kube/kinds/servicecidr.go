package kinds

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func decodeServiceCIDR(c *networkingv1.ServiceCIDR) (*cluster.ServiceCIDR, []cluster.Problem) {
	out, f := &cluster.ServiceCIDR{Name: c.Name}, findingsOf(cluster.KindServiceCIDR, c)
	for i, text := range c.Spec.CIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			f.bad("InvalidServiceCIDR", "spec.cidrs[%d]: %q: want an address range like 10.96.0.0/16 or fd02::/112: "+
				"the range is left out", i, text)
			continue
		}
		out.CIDRs = append(out.CIDRs, p.Masked())
	}
	slices.SortFunc(out.CIDRs, netip.Prefix.Compare)
	return out, f.problems
}
