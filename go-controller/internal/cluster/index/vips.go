package index

import (
	"cmp"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// VIPHolder is the subject of topics about another Service than the one that changed, when it gained or lost a virtual
// IP that both claim; the key is that other Service.
const VIPHolder cluster.Subject = "virtual IP holder"

// VIPs answers which Service holds a virtual IP.
type VIPs struct {
	claims claims[cluster.VIP, cluster.Service]
	old    *cluster.Service // the Service that changes, as it was
}

func newVIPs() *VIPs { return &VIPs{claims: newClaims(compareClaims)} }

// VIPsOf is the index of a State.
func VIPsOf(s *cluster.State) *VIPs { return of(s, newVIPs) }

// Kinds implements cluster.Index.
func (*VIPs) Kinds() []cluster.Kind { return []cluster.Kind{cluster.KindService} }

// Before implements cluster.Index.
func (v *VIPs) Before(s *cluster.State, r cluster.Ref) { v.old = s.Services[r.Name] }

// After implements cluster.Index.
func (v *VIPs) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	old, now := v.old, s.Services[r.Name]
	v.old = nil
	var dropped, added []cluster.VIP
	if old != nil {
		dropped = vips(s, old)
	}
	if now != nil {
		added = vips(s, now)
	}
	return topics(VIPHolder, sortedNames(v.claims.replace(old, now, dropped, added))...)
}

// vips lists the virtual IPs that a Service claims.
func vips(s *cluster.State, of *cluster.Service) []cluster.VIP {
	return of.VIPs(of.Addresses(s.Config.Services, nil))
}

// Holder is the Service that has a virtual IP, nil when none claims it. A Service whose cluster IP it is comes first:
// the API server gives out cluster IPs, while a user may write anything into the other fields. Then the oldest comes
// first, then the first by name.
func (v *VIPs) Holder(vip cluster.VIP) *cluster.Service { return v.claims.holder(vip) }

// compareClaims orders the Services that claim v, its holder first.
func compareClaims(v cluster.VIP, a, b *cluster.Service) int {
	other := func(s *cluster.Service) bool { return !slices.Contains(s.ClusterIPs, v.Addr.Addr()) }
	return cmp.Or(cluster.CompareBool(other(a), other(b)), cmp.Compare(a.Created, b.Created),
		cluster.CompareNames(a.Name, b.Name))
}
