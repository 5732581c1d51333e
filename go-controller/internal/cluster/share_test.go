package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// An object gets as many of its parts as older ones leave it. One that does not fit leaves room to younger ones.
func TestCuts(t *testing.T) {
	parts := func(costs ...int) (c claim) {
		for _, n := range costs {
			c.costs = append(c.costs, cost{n})
		}
		return c
	}
	for _, c := range []struct {
		limit  cost
		claims []claim
		want   []int
	}{
		{cost{10}, nil, nil},
		{cost{10}, []claim{parts(4, 2), parts(6, 3)}, []int{0, 0}},
		{cost{10}, []claim{parts(4, 2), parts(7, 3)}, []int{0, 1}},
		{cost{10}, []claim{parts(9, 2), parts(7, 3), parts(1)}, []int{0, 2, 0}},
		{cost{10}, []claim{parts(11, 10, 1), parts(1)}, []int{1, 1}},
		{cost{0}, []claim{parts(11, 10, 1), parts(1)}, []int{0, 0}},
		{cost{2, 5}, []claim{{costs: []cost{{1, 5}}}, {costs: []cost{{1, 1}}}, {costs: []cost{{1, 0}}}}, []int{0, 1, 0}},
		{cost{0, 5}, []claim{{costs: []cost{{1, 5}}}, {costs: []cost{{1, 1}}}, {costs: []cost{{9, 0}}}}, []int{0, 1, 0}},
	} {
		for present := range 3 { // what they lack before does not matter
			h := share{}
			for i, one := range c.claims {
				one.created, one.name, one.cut = int64(i), fmt.Sprint(i), present
				h.put(one, true)
			}
			got := slices.Repeat([]int{present}, len(c.claims))
			for name, cut := range h.cuts(c.limit) {
				got[name[0]-'0'] = cut
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("limit %d, lacking %d: %v, want %v", c.limit, present, got, c.want)
			}
		}
	}
}

// Whatever happens in whatever order, what objects lack follows from what there is; so a program that sees all at once
// says the same.
func TestSharedAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := config.DefaultCluster()
	c.Services.MaxNamespaceVIPs = 60
	s := NewState(c)
	for range 3000 {
		name := Name{fmt.Sprint("ns", random.IntN(2)), fmt.Sprint("s", random.IntN(12))}
		e := Event{Ref: Ref{KindService, name}}
		if random.IntN(3) > 0 {
			e.New = someService(name, random)
		}
		e.New = s.Resolve(e.New)
		change, _ := s.Apply(e)
		for _, o := range s.Shared([]Change{change}) {
			s.Apply(Event{Ref: o.Ref(), New: o})
		}
		var written []*Service
		for _, v := range s.Services {
			written = append(written, v.lacking(0).(*Service))
		}
		for i, want := range Share(written, c.Services) {
			if got := s.Services[written[i].Name]; got.Cut != want.Cut {
				t.Fatalf("%s lacks %d classes, want %d", got.Name, got.Cut, want.Cut)
			}
		}
		for ns := range 2 {
			if vips := served(s, fmt.Sprint("ns", ns)); vips > 60 {
				t.Fatalf("%d VIPs are served in namespace ns%d", vips, ns)
			}
		}
	}
}

// someService is a service of up to 6 ports, each with a node port, and up to 6 external addresses.
func someService(name Name, random *rand.Rand) *Service {
	out := &Service{Name: name, Created: int64(random.IntN(4)), ClusterIPs: addrs("10.96.0.1")}
	for i := range random.IntN(7) {
		out.Ports = append(out.Ports, ServicePort{Protocol: TCP, Port: uint16(80 + i), NodePort: uint16(30000 + i)})
	}
	for i := range random.IntN(7) {
		out.ExternalIPs = append(out.ExternalIPs, addrs(fmt.Sprint("192.0.2.", i))...)
	}
	return out
}

// served counts the VIPs that services of a namespace have, with node ports.
func served(s *State, namespace string) (n int) {
	for name, v := range s.Services {
		if name.Namespace != namespace {
			continue
		}
		for _, a := range v.Addresses(s.Config.Services, nil) {
			if a.Withheld.Served() {
				n += len(v.Ports)
			}
		}
		if v.ServesNodePorts(s.Config.Services) {
			n += len(v.Ports)
		}
	}
	return n
}

// A policy that lacked its rules has them again, and its own networks all the time.
func TestPolicyLacking(t *testing.T) {
	p := NetworkPolicy{Name: Name{"a", "b"}, Ingress: PolicyRules{Isolates: true, Rules: []PolicyRule{{AnyPeer: true}}},
		Egress: PolicyRules{Rules: []PolicyRule{{AnyPort: true, Peers: []PolicyPeer{{Pods: &PodSelector{}},
			{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("192.0.2.192/26")}}}}}}}
	m := &MultiNetworkPolicy{NetworkPolicy: p, Named: []names.Network{"x"}, Networks: []names.Network{"y"}}
	for _, o := range []sharing{&p, m} {
		want := o.claim(config.Cluster{}).costs
		if !slices.Equal(want, []cost{{1, 5}}) {
			t.Errorf("%T: claims %v, want 1 selector and 5 terms", o, want)
		}
		less := o.lacking(1).(sharing)
		if less.lacking(1) != Object(less) || less.lacks() != 1 || o.lacking(0) != Object(o) {
			t.Errorf("%T: %+v", o, less)
		}
		if got := less.claim(config.Cluster{}).costs; !slices.Equal(got, want) {
			t.Errorf("%T: without rules it claims %v", o, got)
		}
		if again := less.lacking(0); !again.Equal(o) {
			t.Errorf("%T: afterwards %+v, want %+v", o, again, o)
		}
	}
	less := m.lacking(1).(*MultiNetworkPolicy)
	if len(less.Ingress.Rules)+len(less.Egress.Rules) > 0 || !less.Ingress.Isolates || !less.About("y") {
		t.Errorf("without rules: %+v", less)
	}
}
