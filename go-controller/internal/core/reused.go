package core

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// ReleaseReused takes the addresses of ports that the batch writes out of the address sets of stale owners, which want
// nothing and whose removal waits. A policy that holds only because its removal waits must not allow the traffic of a
// new pod that was granted a former pod's address. The owners are those in the database. The change of a set is part of
// the plan of the port: the two are written, or refused, together. reserved is true if such an address is reserved.
func (b *Batch) ReleaseReused(owners []nb.Owner) (reserved bool) {
	given := b.given()
	if len(given) == 0 {
		return false
	}
	for a := range given {
		reserved = reserved || b.core.reserved(a)
	}
	deleted := map[nb.Ref]bool{}
	for _, p := range b.Plans {
		for _, r := range p.Rows {
			if r.Verb == nb.Delete {
				deleted[r.Ref()] = true
			}
		}
	}
	for _, o := range b.core.Removal(b.view, owners).Owners {
		for _, ref := range b.view.Owned(o) {
			if set, ok := b.view.Row(ref).(*nbdb.AddressSet); ok && !deleted[ref] {
				b.remove(set, ref, given)
			}
		}
	}
	return reserved
}

// remove takes given addresses out of a set. Each removal is part of the plan that gives the address to a port.
func (b *Batch) remove(set *nbdb.AddressSet, ref nb.Ref, given map[string]int) {
	key, ok := b.core.Schema.Mark(set)
	if !ok {
		return
	}
	inherited := map[int][]string{} // by the plan
	for _, a := range set.Addresses {
		if plan, ok := given[a]; ok {
			inherited[plan] = append(inherited[plan], a)
		}
	}
	for plan, addresses := range inherited {
		slices.Sort(addresses)
		b.Plans[plan].Rows = append(slices.Clone(b.Plans[plan].Rows), nb.RowChange{Verb: nb.Update, Key: key, UUID: ref.UUID,
			Label: set.Name, Columns: []nb.ColumnChange{{Column: "addresses", Remove: addresses}}})
	}
}

// given is the addresses of ports that the batch writes, as text without a prefix length, and the index of the plan.
func (b *Batch) given() map[string]int {
	out := map[string]int{}
	for i, p := range b.Plans {
		for _, r := range p.Rows {
			if r.Key.Table != nbdb.LogicalSwitchPortTable || r.Verb == nb.Delete {
				continue
			}
			for _, c := range r.Columns {
				if c.Column != "addresses" {
					continue
				}
				for _, word := range strings.Fields(strings.Join(c.Add, " ")) { // "MAC IP IP"
					if _, err := netip.ParseAddr(word); err == nil {
						out[word] = i
					}
				}
			}
		}
	}
	return out
}
