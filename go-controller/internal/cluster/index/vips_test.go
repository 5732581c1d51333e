package index

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func TestHolder(t *testing.T) {
	ports := []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}
	vip := cluster.VIP{Addr: netip.MustParseAddrPort("192.0.2.1:80"), Protocol: cluster.TCP}
	svc := func(name string, created int64, ips ...string) *cluster.Service {
		return &cluster.Service{Name: cluster.Name{Namespace: "d", Name: name}, Created: created, ClusterIPs: addrs(ips...),
			ExternalIPs: addrs("192.0.2.1"), Ports: ports}
	}
	s := NewState(config.DefaultCluster())
	step := func(what string, e cluster.Event, holder string, rivals ...string) {
		t.Helper()
		c, ok := s.Apply(e)
		if !ok {
			t.Fatalf("%s is no change", what)
		}
		var got []string
		for _, r := range c.About(VIPHolder) {
			got = append(got, r.Name)
		}
		name := ""
		if h := VIPsOf(s).Holder(vip); h != nil {
			name = h.Name.Name
		}
		if name != holder || !slices.Equal(got, rivals) {
			t.Errorf("%s: %q has the VIP, rivals %v; want %q, %v", what, name, got, holder, rivals)
		}
	}
	put := func(s *cluster.Service) cluster.Event { return cluster.Event{Ref: s.Ref(), New: s} }
	gone := func(name string) cluster.Event {
		return cluster.Event{Ref: cluster.Ref{Kind: cluster.KindService, Name: cluster.Name{Namespace: "d", Name: name}}}
	}
	step("the first comes", put(svc("m", 5, "10.96.0.1")), "m")
	step("a younger one comes", put(svc("a", 6, "10.96.0.2")), "m")
	step("one of the same age, later in the alphabet", put(svc("z", 5, "10.96.0.3")), "m")
	step("one of the same age, earlier in the alphabet", put(svc("l", 5, "10.96.0.4")), "l", "m")
	step("an older one comes", put(svc("o", 4, "10.96.0.5")), "o", "l")
	step("the youngest has the address for its cluster IP", put(svc("a", 6, "192.0.2.1")), "a", "o")
	step("and gives it up", put(svc("a", 6, "10.96.0.2")), "o", "o")
	step("the oldest is made anew", put(svc("o", 9, "10.96.0.5")), "l", "l")
	step("the holder leaves the address", put(&cluster.Service{Name: cluster.Name{Namespace: "d", Name: "l"}, Created: 5,
		Ports: ports, ClusterIPs: addrs("10.96.0.4")}), "m", "m")
	step("the holder goes", gone("m"), "z", "z")
	step("one that never had it goes", gone("a"), "z")
	step("the holder has another port", put(&cluster.Service{Name: cluster.Name{Namespace: "d", Name: "z"}, Created: 5,
		ClusterIPs: addrs("10.96.0.3"), ExternalIPs: addrs("192.0.2.1"),
		Ports: []cluster.ServicePort{{Protocol: cluster.UDP, Port: 80}}}), "o", "o")
	limited := &cluster.Service{Name: cluster.Name{Namespace: "d", Name: "n"}, Created: 1, ClusterIPs: addrs("10.96.0.6"),
		Ingress: []cluster.Ingress{{Addr: vip.Addr.Addr()}}, SourceRanges: []netip.Prefix{{}}, Ports: ports}
	step("one whose clients the nodes' kernels pick is older", put(limited), "n", "o")
	proxied := *limited
	proxied.Ingress = []cluster.Ingress{{Addr: vip.Addr.Addr(), Proxied: true}}
	step("its load balancer answers there itself", put(&proxied), "o", "o")
	step("that one goes", gone("n"), "o")
	step("the last goes", gone("o"), "")
	for _, name := range []string{"l", "z"} {
		step(name+" goes", gone(name), "")
	}
	if len(VIPsOf(s).claims.of) != 0 {
		t.Errorf("claims %v of no service", VIPsOf(s).claims.of)
	}
}

// Whatever happened, holders are what the whole state says, and the topics name exactly the other services whose VIPs
// changed.
func TestHoldersAfterAnyPath(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := NewState(config.DefaultCluster())
		held := map[cluster.VIP]cluster.Name{}
		for step := range 300 {
			svc := &cluster.Service{Name: cluster.Name{Namespace: "d", Name: fmt.Sprintf("s%d", r.IntN(6))},
				Created: int64(r.IntN(3)), ClusterIPs: addrs(fmt.Sprintf("10.96.0.%d", r.IntN(4)))}
			for range r.IntN(3) {
				svc.ExternalIPs = append(svc.ExternalIPs, addrs(fmt.Sprintf("10.96.0.%d", r.IntN(6)))...)
			}
			for _, p := range cluster.Protocols() {
				if r.IntN(2) == 0 {
					svc.Ports = append(svc.Ports, cluster.ServicePort{Protocol: p, Port: uint16(1 + r.IntN(2))})
				}
			}
			e := cluster.Event{Ref: svc.Ref(), New: svc}
			if r.IntN(4) == 0 {
				e.New = nil
			}
			c, ok := s.Apply(e)
			if !ok {
				continue
			}
			now := holders(s)
			var rivals []cluster.Name
			for v, h := range now {
				if held[v] != h {
					rivals = append(rivals, h, held[v])
				}
			}
			for v, h := range held {
				if now[v] != h {
					rivals = append(rivals, h)
				}
			}
			rivals = slices.DeleteFunc(rivals, func(n cluster.Name) bool { return n == svc.Name || n == cluster.Name{} })
			slices.SortFunc(rivals, cluster.CompareNames)
			if rivals = slices.Compact(rivals); !slices.Equal(c.About(VIPHolder), rivals) {
				t.Fatalf("seed %d step %d: rivals %v, want %v", seed, step, c.About(VIPHolder), rivals)
			}
			for v, h := range now {
				if got := VIPsOf(s).Holder(v); got == nil || got.Name != h {
					t.Fatalf("seed %d step %d: %s is of %v, want %s", seed, step, v, got, h)
				}
			}
			if len(VIPsOf(s).claims.of) != len(now) {
				t.Fatalf("seed %d step %d: %d VIPs are claimed, want %d", seed, step, len(VIPsOf(s).claims.of), len(now))
			}
			held = now
		}
	}
}

// holders is the service that has each VIP, worked out from all services.
func holders(s *cluster.State) map[cluster.VIP]cluster.Name {
	best := map[cluster.VIP]*cluster.Service{}
	for _, svc := range s.Services {
		for _, v := range vips(s, svc) {
			if best[v] == nil || compareClaims(v, svc, best[v]) < 0 {
				best[v] = svc
			}
		}
	}
	out := map[cluster.VIP]cluster.Name{}
	for v, svc := range best {
		out[v] = svc.Name
	}
	return out
}
