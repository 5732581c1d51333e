package local

import (
	"net/netip"
	"slices"
)

// ServiceRanges are the ranges of ClusterIPs that the API has ServiceCIDRs for, sorted, each once. There are none when
// the API server does not serve such objects. ok is false until that is known, and while it refuses to list them.
func (w *Watcher) ServiceRanges() (all []netip.Prefix, ok bool) {
	list, _ := w.ranges.all()
	for _, r := range list {
		all = append(all, r.CIDRs...)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all), w.ranges.isListed()
}
