package serviceport

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Every endpoint gets its share, to one bucket, in the same order of endpoints
// whatever happened before; and of the buckets of those that stay few go to
// others when one goes.
func TestAssignBuckets(t *testing.T) {
	var all []netip.AddrPort
	for i := range 130 {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, byte(3 + i)}), 8080))
	}
	for n := 2; n <= len(all); n++ {
		buckets := assignBuckets(all[:n], hostplan.ServiceBuckets)
		count := map[netip.AddrPort]int{}
		for _, to := range buckets {
			count[to]++
		}
		least, most := hostplan.ServiceBuckets/n, (hostplan.ServiceBuckets+n-1)/n
		for i, e := range all[:n] {
			if n := count[e]; n < least || n > most {
				t.Errorf("of %d endpoints number %d has %d buckets, want %d to %d", len(count), i, n, least, most)
			}
		}
		if len(buckets) != hostplan.ServiceBuckets || len(count) != min(n, hostplan.ServiceBuckets) {
			t.Errorf("%d endpoints have %d buckets, %d of them some", n, len(buckets), len(count))
		}
		if n > 12 {
			continue
		}
		moved, gone := 0, all[n/2]
		for i, to := range assignBuckets(slices.Delete(slices.Clone(all[:n+1]), n/2, n/2+1), hostplan.ServiceBuckets) {
			if was := assignBuckets(all[:n+1], hostplan.ServiceBuckets)[i]; was != gone && was != to {
				moved++
			}
		}
		if moved > hostplan.ServiceBuckets/4 {
			t.Errorf("when one of %d goes, %d buckets of others move, want a quarter of all at most", n+1, moved)
		}
	}
}
