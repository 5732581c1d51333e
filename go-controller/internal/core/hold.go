package core

import (
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// There is which policies a database with these owners has. Which policies isolate pods is not known: many have no
// rows of their own.
func There(v nb.View, owners []nb.Owner) (out cluster.Held) {
	for _, o := range owners {
		out.Any = out.Any || o.Kind == names.KindIsolation
		out.Multi = out.Multi || o.Kind == names.KindNetworkIsolation
	}
	shared := v.Owned(nb.Owner{Kind: names.KindCluster, Name: names.ClusterOwner})
	out.Logged = slices.ContainsFunc(shared, func(r nb.Ref) bool { return r.Table == nbdb.MeterTable })
	return out
}

// Hold has policies go on that a removal keeps as long as it waits: those of there, the result of There when the
// removal was first put off, and those of the owners that are still held back. changed is true when others went on
// until now: what stayed because of them may go.
func (c *Core) Hold(there cluster.Held, held map[nb.Owner]bool) (changed bool) {
	for o := range held {
		there.Tiered = there.Tiered || o.Kind == names.KindClusterPolicy || o.Kind == names.KindTenant
	}
	changed = c.State.Held != there
	c.State.Held = there
	return changed
}

// Release is Hold of nothing.
func (c *Core) Release() (changed bool) { return c.Hold(cluster.Held{}, nil) }

// Keeps is true when an owner has rows that may keep something while removals wait: addresses that are reserved.
func Keeps(v nb.View, o nb.Owner) bool {
	return slices.ContainsFunc(v.Owned(o), func(r nb.Ref) bool { return r.Table == nbdb.AddressSetTable })
}

// holding is the part of a plan that takes nothing from policies whose removal waits: no port leaves a group, no group
// or set of a selector is deleted, and no reserved address leaves a set. A port that is deleted leaves its groups.
// While there are tenants, a port leaves the group of its former tenant: tenants are known even while policies are not.
func holding(p nb.Plan, tenants bool, reserved func(address string) bool) nb.Plan {
	out := nb.Plan{Owner: p.Owner}
	kept, deleted := map[nb.Ref]bool{}, map[nb.Ref]bool{}
	for _, r := range p.Rows {
		switch {
		case r.Verb != nb.Delete:
		case p.Owner.Kind == names.KindSelector:
			kept[r.Ref()] = true
			continue
		default:
			deleted[r.Ref()] = true
		}
		if r.Key.Table == nbdb.AddressSetTable && r.Verb == nb.Update {
			if r.Columns = keeping(r.Columns, reserved); len(r.Columns) == 0 {
				continue
			}
		}
		out.Rows = append(out.Rows, r)
	}
	for _, m := range p.Members {
		leaves := m.Remove && m.Slot.In.Table == nbdb.PortGroupTable && m.Slot.Column == "ports" && !deleted[m.Ref()]
		if tenants && strings.HasPrefix(m.In, names.TenantGroups) {
			leaves = false
		}
		if !leaves && !kept[m.Ref()] {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// keeping is the changes of an address set without the removal of reserved addresses.
func keeping(changes []nb.ColumnChange, reserved func(address string) bool) (out []nb.ColumnChange) {
	for _, c := range changes {
		if c.Column == "addresses" {
			c.Remove = slices.DeleteFunc(slices.Clone(c.Remove), reserved)
			if len(c.Add)+len(c.Remove) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}
