package cluster

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Equal compares every field of a Service, also one that is added later: an object with one field set differs from an
// object with none.
func TestEqualComparesEveryField(t *testing.T) {
	for _, zero := range []Object{&Service{}, &EndpointSlice{}} {
		typ := reflect.TypeOf(zero).Elem()
		for i := range typ.NumField() {
			v := reflect.New(typ)
			v.Elem().Field(i).Set(something(t, typ.Field(i).Type))
			other, ok := v.Interface().(Object)
			if !ok || other.Equal(zero) || zero.Equal(other) || !other.Equal(other) {
				t.Errorf("%s does not see a difference in %s", typ, typ.Field(i).Name)
			}
		}
	}
	endpoint := reflect.TypeFor[Endpoint]()
	for i := range endpoint.NumField() {
		v := reflect.New(endpoint).Elem()
		v.Field(i).Set(something(t, endpoint.Field(i).Type))
		e, ok := v.Interface().(Endpoint)
		if !ok || CompareEndpoints(e, Endpoint{}) <= 0 || CompareEndpoints(Endpoint{}, e) >= 0 {
			t.Errorf("CompareEndpoints does not see a difference in %s", endpoint.Field(i).Name)
		}
	}
}

// something is a value of a type that is not the zero value.
func something(t *testing.T, typ reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch {
	case typ == reflect.TypeFor[netip.Addr]():
		return reflect.ValueOf(netip.MustParseAddr("10.0.0.1"))
	case typ == reflect.TypeFor[netip.Prefix]():
		return reflect.ValueOf(netip.MustParsePrefix("10.0.0.0/8"))
	case typ.Kind() == reflect.String:
		v.SetString("x")
	case typ.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case typ.Kind() == reflect.Slice:
		return reflect.Append(v, something(t, typ.Elem()))
	case typ.Kind() == reflect.Struct:
		v.Field(0).Set(something(t, typ.Field(0).Type))
	default:
		t.Fatalf("a field of type %s: say here what a value of it is", typ)
	}
	return v
}

// With internalTrafficPolicy Local, connections from outside go to ports of the ClusterIP that the service does not
// have, each to another one.
func TestOutsidePort(t *testing.T) {
	tcp := func(port, nodePort uint16) ServicePort {
		return ServicePort{Protocol: TCP, Port: port, NodePort: nodePort}
	}
	ports := []ServicePort{tcp(80, 30080), tcp(65535, 30081), tcp(65533, 0), tcp(443, 30443)}
	external := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	for what, c := range map[string]struct {
		s    Service
		want []uint16
	}{
		"policy Cluster":       {Service{Ports: ports, ExternalIPs: external}, []uint16{80, 65535, 65533, 443}},
		"some have node ports": {Service{Ports: ports, InternalLocal: true}, []uint16{65534, 65532, 65533, 65530}},
		"external IPs": {Service{Ports: ports, InternalLocal: true, ExternalIPs: external},
			[]uint16{65534, 65532, 65531, 65530}},
		"nobody is let in": {Service{Ports: []ServicePort{tcp(80, 0)}, InternalLocal: true}, []uint16{80}},
		"a load balancer's IPs": {Service{Ports: []ServicePort{tcp(80, 0)}, InternalLocal: true,
			Ingress: []Ingress{{Addr: external[0]}}}, []uint16{65535}},
	} {
		if got := c.s.OutsidePorts(); !slices.Equal(got, c.want) {
			t.Errorf("%s: the ports are entered at %v, want %v", what, got, c.want)
		}
	}
}

// When every port is in use, none is spare.
func TestOutsidePortsOfAllPorts(t *testing.T) {
	s := Service{InternalLocal: true, ExternalIPs: addrs("192.0.2.1")}
	for i := 1; i <= math.MaxUint16; i++ {
		s.Ports = append(s.Ports, ServicePort{Protocol: TCP, Port: uint16(i)})
	}
	if got := s.OutsidePorts(); len(got) != len(s.Ports) || got[0] != 1 || got[len(got)-1] != math.MaxUint16 {
		t.Errorf("the first of %d ports is entered at %d, the last at %d", len(got), got[0], got[len(got)-1])
	}
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// The addresses that a service names, and those where it answers.
func TestAddresses(t *testing.T) {
	a := addrs("10.96.0.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")
	s := &Service{ClusterIPs: a[:1], ExternalIPs: a[:2], Ingress: []Ingress{{Addr: a[1], Proxied: true}, {Addr: a[2]},
		{Addr: a[3], Proxied: true}}}
	want := []ServiceAddr{{a[0], FromClusterIPs, NotWithheld}, {a[1], FromExternalIPs, NotWithheld},
		{a[2], FromIngress, NotWithheld}, {a[3], FromIngress, ProxyMode}}
	if got := s.Addresses(config.Services{}, nil); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	s.SourceRanges = []netip.Prefix{{}}
	want[2].Withheld = SourcesLimits
	if got := s.Addresses(config.Services{}, nil); !slices.Equal(got, want) {
		t.Errorf("addresses of a service with source ranges %v, want %v", got, want)
	}
	s.ExternalIPs = addrs("192.0.2.2") // no way past the ranges
	s.Ingress = []Ingress{{Addr: a[2]}}
	if got, want := s.Addresses(config.Services{}, nil), []ServiceAddr{want[0], want[2]}; !slices.Equal(got, want) {
		t.Errorf("addresses of which one is in both fields %v, want %v", got, want)
	}
	s.ClusterIPs = nil
	if got := s.Addresses(config.Services{}, nil); got != nil {
		t.Errorf("addresses of a service without a cluster IP %v, want none", got)
	}
}

// hostile is a service with so many ports and external addresses.
func hostile(ports, external int) *Service {
	s := &Service{ClusterIPs: addrs("10.96.0.1", "fd02::1")}
	for i := range ports {
		s.Ports = append(s.Ports, ServicePort{Protocol: TCP, Port: uint16(1 + i)})
	}
	for i := range external {
		s.ExternalIPs = append(s.ExternalIPs, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
	}
	return s
}

// A service that exceeds the limit of VIPs is served class by class: ClusterIPs, node ports, external addresses.
func TestLimitOfVIPs(t *testing.T) {
	limit := config.Services{MaxVIPs: 100}
	withNodePorts := func(s *Service) *Service {
		for i := range s.Ports {
			s.Ports[i].NodePort = uint16(30000 + i)
		}
		return s
	}
	sources := hostile(2, 0)
	sources.Ingress, sources.SourceRanges = []Ingress{{Addr: netip.MustParseAddr("192.0.2.1")}}, make([]netip.Prefix, 47)
	proxied := hostile(50, 0)
	proxied.Ingress = []Ingress{{Addr: netip.MustParseAddr("192.0.2.1"), Proxied: true}}
	near := hostile(26, 1)
	near.InternalLocal = true
	for what, c := range map[string]struct {
		s         *Service
		vips      int
		nodePorts bool
		excess    string
	}{
		"all":                        {hostile(10, 8), 100, true, ""},
		"one address too many":       {withNodePorts(hostile(10, 7)), 20, true, "110 addresses x ports"},
		"node ports, too":            {withNodePorts(hostile(26, 0)), 52, false, "only its ClusterIPs are served"},
		"ClusterIPs, too":            {hostile(51, 0), 0, false, "nothing of it is served"},
		"half of them outside ports": {near, 0, false, "130 addresses x ports"},
		"source ranges":              {sources, 6, true, ""},
		"a load balancer's address":  {proxied, 100, true, ""},
		"the attack":                 {hostile(200, 500), 0, false, "100400 addresses x ports"},
	} {
		got := c.s.VIPs(c.s.Addresses(limit, nil))
		if len(got) != c.vips || c.s.ServesNodePorts(limit) != c.nodePorts {
			t.Errorf("%s: %d VIPs, node ports %v; want %d, %v", what, len(got), c.s.ServesNodePorts(limit), c.vips, c.nodePorts)
		}
		if excess := c.s.Excess(limit); !strings.Contains(excess, c.excess) || (excess == "") != (c.excess == "") {
			t.Errorf("%s: %q, want %q in it", what, excess, c.excess)
		}
		if n := len(c.s.VIPs(c.s.Addresses(config.Services{}, nil))); n < c.vips {
			t.Errorf("%s: without a limit %d VIPs", what, n)
		}
	}
	sources.SourceRanges = make([]netip.Prefix, 48)
	if n := len(sources.VIPs(sources.Addresses(limit, nil))); n != 4 {
		t.Errorf("one source range too many: %d VIPs, want 4", n)
	}
}

// Of too many endpoints of a family, ready ones serve first. A service with many VIPs has fewer endpoints.
func TestLimitOfEndpoints(t *testing.T) {
	slice := func(family string, conditions ...Conditions) *EndpointSlice {
		e := &EndpointSlice{}
		for i, c := range conditions {
			e.Endpoints = append(e.Endpoints, Endpoint{Addr: netip.MustParseAddr(fmt.Sprintf(family, i)), Conditions: c})
		}
		return e
	}
	const v4, v6 = "10.244.0.%d", "fd01::%d"
	eps := []*EndpointSlice{slice(v4, 0, Serving|Terminating, Ready), slice(v4, Ready, Ready), slice(v6, Ready, Ready, Ready)}
	kept := func(s *Service, limit int) (string, int) {
		got, left := s.Within(config.Services{MaxEndpoints: limit}, eps)
		out := ""
		for _, e := range got {
			for _, ep := range e.Endpoints {
				out += ep.Addr.String() + " "
			}
		}
		return strings.TrimSpace(out), left
	}
	for _, c := range []struct {
		s     *Service
		limit int
		want  string
		left  int
	}{
		{hostile(1, 0), 3, "10.244.0.2 10.244.0.0 10.244.0.1 fd01:: fd01::1 fd01::2", 2},
		{hostile(1, 0), 4, "10.244.0.2 10.244.0.1 10.244.0.0 10.244.0.1 fd01:: fd01::1 fd01::2", 1},
		{hostile(1, 8), 1, "10.244.0.0 fd01::", 6},
		{hostile(1, 18), 4, "10.244.0.0 10.244.0.1 fd01:: fd01::1", 4},
		{hostile(200, 500), 4, "10.244.0.0 fd01::", 6},
	} {
		if got, left := kept(c.s, c.limit); got != c.want || left != c.left {
			t.Errorf("%d ports and %d addresses: %s are within %d endpoints, %d are left; want %s, %d", len(c.s.Ports),
				len(c.s.ExternalIPs), got, c.limit, left, c.want, c.left)
		}
	}
	for _, limit := range []int{0, 5} {
		if got, left := hostile(1, 0).Within(config.Services{MaxEndpoints: limit}, eps); left != 0 || len(got) != len(eps) {
			t.Errorf("limit %d leaves %d endpoints out", limit, left)
		}
	}
}

// External addresses that somebody has are refused, with who has them. ClusterIPs are not, and everything else is
// allowed, or just what is in the operator's ranges.
func TestTaken(t *testing.T) {
	var taken Taken
	for i, h := range []Holder{{As: HolderNode, Name: Name{Name: "n1"}}, {As: HolderAPI},
		{As: HolderService, Name: Name{Namespace: "d", Name: "b"}}, {As: HolderService, Name: Name{Namespace: "d", Name: "a"}}} {
		taken.Put(addrs("172.18.0.3", "172.18.0.4", "10.97.0.1", "10.97.0.1")[i], h, true)
	}
	taken.Put(netip.MustParseAddr("192.0.2.9"), Holder{As: HolderAPI}, true)
	taken.Put(netip.MustParseAddr("192.0.2.9"), Holder{As: HolderAPI}, false)
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	among := taken.Among([]config.ClusterSubnet{{CIDR: netip.MustParsePrefix("fd01::/48")}},
		prefixes("10.96.0.0/16", "fd02::/112"), prefixes("100.64.1.0/24"))
	why := func(c config.Services, addr string) string {
		s := &Service{ClusterIPs: addrs("10.96.0.1"), Ingress: []Ingress{{Addr: netip.MustParseAddr(addr)}}}
		all := s.Addresses(c, among)
		if all[0].Withheld != NotWithheld {
			t.Errorf("the ClusterIP is withheld: %s", all[0].Withheld)
		}
		a := all[1]
		if a.Withheld.Refused() != !a.Withheld.Served() {
			t.Errorf("%+v: it is neither served nor refused", a)
		}
		return string(a.Withheld)
	}
	for addr, want := range map[string]string{
		"172.18.0.3": "it is an address of Node n1", "172.18.0.4": "it is an address of the API server",
		"10.97.0.1": "it is the ClusterIP of Service d/a", "10.96.7.7": "it is for ClusterIPs: in the range 10.96.0.0/16",
		"fd02::7": "it is for ClusterIPs: in the range fd02::/112",
		"fd01::7": "it is for pods: in --cluster-subnets fd01::/48", "100.64.1.2": "it is for routers: in --join-subnet 100.64.1.0/24",
		"fd69::5": "it is the source of packets that come back: fd69::5/128", "192.0.2.9": "", "2001:db8::1": "",
	} {
		if got := why(config.Services{}, addr); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	c := config.Services{ExternalCIDRs: prefixes("192.0.2.0/24", "172.18.0.0/16")}
	for addr, want := range map[string]string{
		"192.0.2.9": "", "172.18.0.3": "it is an address of Node n1",
		"2001:db8::1": "it is in none of --external-ip-cidrs 192.0.2.0/24,172.18.0.0/16",
	} {
		if got := why(c, addr); got != want {
			t.Errorf("with ranges, %s: %q, want %q", addr, got, want)
		}
	}
}
