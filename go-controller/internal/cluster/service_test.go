package cluster

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
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
		for i, p := range c.s.Ports {
			if got := c.s.OutsidePort(p); got != c.want[i] {
				t.Errorf("%s: port %d is entered at %d, want %d", what, p.Port, got, c.want[i])
			}
		}
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
	if got := s.Addresses(); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	s.SourceRanges = []netip.Prefix{{}}
	want[2].Withheld = SourcesLimits
	if got := s.Addresses(); !slices.Equal(got, want) {
		t.Errorf("addresses of a service with source ranges %v, want %v", got, want)
	}
	s.ExternalIPs = addrs("192.0.2.2") // no way past the ranges
	s.Ingress = []Ingress{{Addr: a[2]}}
	if got, want := s.Addresses(), []ServiceAddr{want[0], want[2]}; !slices.Equal(got, want) {
		t.Errorf("addresses of which one is in both fields %v, want %v", got, want)
	}
	s.ClusterIPs = nil
	if got := s.Addresses(); got != nil {
		t.Errorf("addresses of a service without a cluster IP %v, want none", got)
	}
}
