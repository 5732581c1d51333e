package topology

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Zone translates the zones that have nodes. Each becomes a load balancer group, which the switches of its nodes list.
// While no node is in a zone there are no such groups.
type Zone struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Zone) Kind() names.Kind { return names.KindZone }

// Owners implements translate.Translator.
func (Zone) Owners(s *cluster.State) []nb.Owner { return zoneOwners(index.ZonesOf(s).List()) }

// Depends implements translate.Translator.
func (Zone) Depends() translate.Dependencies {
	return translate.Dependencies{Subjects: []cluster.Subject{index.ZoneInUse}}
}

// Affected implements translate.Translator.
func (Zone) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	var zones []string
	for _, n := range c.About(index.ZoneInUse) {
		zones = append(zones, n.Name)
	}
	return zoneOwners(zones)
}

func zoneOwners(zones []string) []nb.Owner {
	var out []nb.Owner
	for _, z := range zones {
		out = append(out, nb.Owner{Kind: names.KindZone, Name: names.ZoneOwner(z)})
	}
	return out
}

// Rows implements translate.Translator.
func (t Zone) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	zone := names.OwnedZone(o.Name)
	if !index.ZonesOf(s).Has(zone) {
		return translate.Rows{}, nil
	}
	m := translate.Maker{Schema: t.Schema, Owner: o}
	group := m.Row(names.RoleLBGroup, &nbdb.LoadBalancerGroup{Name: names.ZoneLBGroup(zone)})
	return translate.Rows{Rows: []nb.Row{group}}, nil
}
