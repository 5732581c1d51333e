package nbrecord

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// DomainNames is the addresses that a master found for names in DNS when it last wrote. Names without rows are left
// out. The addresses are sorted.
func DomainNames(view nb.View, list []string) map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	for _, name := range list {
		for _, ref := range view.Owned(nb.Owner{Kind: names.KindSelector, Name: index.DomainNameHash(name)}) {
			set, ok := view.Row(ref).(*nbdb.AddressSet)
			if !ok {
				continue
			}
			out[name] = append(out[name], []netip.Addr{}...)
			for _, text := range set.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
					out[name] = append(out[name], a)
				}
			}
		}
		slices.SortFunc(out[name], netip.Addr.Compare)
	}
	return out
}

// DomainNameObjects is the same as objects of the cluster, for the policies among objects.
func DomainNameObjects(view nb.View, objects []cluster.Object) []cluster.Object {
	var list []string
	for _, o := range objects {
		if p, ok := o.(*cluster.TieredPolicy); ok {
			list = append(list, p.DomainNames()...)
		}
	}
	var out []cluster.Object
	for name, addrs := range DomainNames(view, list) {
		out = append(out, cluster.NewDomainName(name, addrs, ""))
	}
	return out
}
