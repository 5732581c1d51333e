package core

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Disinherit takes the addresses of ports that the batch writes out of the address sets of stale owners, which want
// nothing and whose removal waits. The owners are those in the database. A policy that holds only because its removal
// waits must not allow the traffic of a new pod that was granted a former pod's address.
func (b *Batch) Disinherit(owners []nb.Owner) {
	given := b.given()
	if len(given) == 0 {
		return
	}
	for _, o := range b.core.Removal(b.view, owners).Owners {
		p := nb.Plan{Owner: o}
		for _, ref := range b.view.Owned(o) {
			set, ok := b.view.Row(ref).(*nbdb.AddressSet)
			key, marked := b.core.Schema.Mark(b.view.Row(ref))
			if !ok || !marked {
				continue
			}
			inherited := slices.DeleteFunc(slices.Clone(set.Addresses), func(a string) bool { return !given[a] })
			if len(inherited) > 0 {
				slices.Sort(inherited)
				p.Rows = append(p.Rows, nb.RowChange{Verb: nb.Update, Key: key, UUID: ref.UUID, Label: set.Name,
					Columns: []nb.ColumnChange{{Column: "addresses", Remove: inherited}}})
			}
		}
		if !p.Empty() {
			b.Plans = append(b.Plans, p)
			b.Done = slices.DeleteFunc(b.Done, func(done nb.Owner) bool { return done == o })
			b.Ops += p.Ops()
		}
	}
}

// given is the addresses of ports that the batch writes, as text without a prefix length.
func (b *Batch) given() map[string]bool {
	out := map[string]bool{}
	for _, p := range b.Plans {
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
						out[word] = true
					}
				}
			}
		}
	}
	return out
}
