package assign

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// service is one with a cluster IP of its own, and more addresses.
func service(name string, created int64, external ...string) *cluster.Service {
	s := &cluster.Service{Name: cluster.Name{Namespace: "default", Name: name}, UID: "uid-" + name, Created: created,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, name[0]})}, Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
	for _, a := range external {
		s.ExternalIPs = append(s.ExternalIPs, netip.MustParseAddr(a))
	}
	return s
}

// Of services that claim one address, those that don't have it are told who
// has: once, and again when it is another address or another loser.
func TestServicesThatClaimOneAddress(t *testing.T) {
	w := newWorld(t, "10.0.0.0/16/24")
	told := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range w.last.Problems {
			if p.Reason != ReasonVIPTaken || p.UID != "uid-"+p.Ref.Name.Name {
				t.Errorf("%s: problem %+v", what, p)
			}
			got = append(got, p.Ref.Name.Name+": "+p.Message)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: problems %q, want %q", what, got, want)
		}
	}
	const lost = "%s: 192.0.2.1:80/TCP is of Service default/%s: want an address and port that no other service has: it does not answer there"
	w.put(service("b", 2, "192.0.2.1"))
	told("nobody else has it")
	w.put(service("c", 3, "192.0.2.1"))
	told("a younger one", fmt.Sprintf(lost, "c", "b"))
	w.put(service("c", 3, "192.0.2.1", "192.0.2.2"))
	told("the same loss again")
	w.put(service("a", 1, "192.0.2.1"))
	told("an older one", fmt.Sprintf(lost, "b", "a"))
	w.drop(service("a", 1))
	told("the oldest goes: the next has it")
	w.put(service("c", 3))
	told("a loser asks no more")
	w.put(service("c", 3, "192.0.2.1"))
	told("and asks again", fmt.Sprintf(lost, "c", "b"))
	limited := service("a", 1)
	limited.Ingress, limited.SourceRanges = []cluster.Ingress{{Addr: netip.MustParseAddr("192.0.2.1")}}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	w.put(limited)
	told("an older one, whose clients the nodes' kernels pick", fmt.Sprintf(lost, "b", "a"))
	w.drop(limited)
	var many []string
	for i := range 7 {
		many = append(many, fmt.Sprintf("192.0.2.%d", 10+i))
	}
	w.put(service("d", 4, many...), service("e", 5, many...))
	told("many at once", "e: 192.0.2.10:80/TCP is of Service default/d, 192.0.2.11:80/TCP is of Service default/d, 192.0.2.12:80/TCP is of Service default/d, "+
		"192.0.2.13:80/TCP is of Service default/d, and 3 more: want an address and port that no other service has: it does not answer there")
}
