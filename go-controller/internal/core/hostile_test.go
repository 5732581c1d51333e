package core_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// hostile is a service with so many external addresses of its own, and so many ports. Fifty are in one namespace.
func hostile(i, external, ports int) *cluster.Service {
	name := fmt.Sprint("hostile", i)
	s := &cluster.Service{Name: cluster.Name{Namespace: fmt.Sprint("evil", i/50), Name: name}, Created: 1,
		UID:        "uid-" + name,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 1, byte(i)})}}
	for j := range external {
		s.ExternalIPs = append(s.ExternalIPs, netip.AddrFrom4([4]byte{198, byte(18 + j>>8), byte(j), byte(i)}))
	}
	for j := range ports {
		s.Ports = append(s.Ports, cluster.ServicePort{Name: fmt.Sprint("p", j), Protocol: cluster.TCP, Port: uint16(1 + j)})
	}
	return s
}

// endpointsOf is slices of a service with so many endpoints, of a thousand each.
func endpointsOf(s *cluster.Service, endpoints int) []cluster.Object {
	var out []cluster.Object
	for i := range (endpoints + 999) / 1000 {
		e := &cluster.EndpointSlice{Service: s.Name.Name,
			Name: cluster.Name{Namespace: s.Name.Namespace, Name: fmt.Sprint(s.Name.Name, "-", i)}}
		for _, p := range s.Ports {
			e.Ports = append(e.Ports, cluster.EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: 8080})
		}
		slices.SortFunc(e.Ports, cluster.CompareEndpointPorts)
		for j := i * 1000; j < min((i+1)*1000, endpoints); j++ {
			e.Endpoints = append(e.Endpoints, cluster.Endpoint{Conditions: cluster.Ready,
				Addr: netip.AddrFrom4([4]byte{10, 128, byte(j >> 8), byte(j)})})
		}
		out = append(out, e)
	}
	return out
}

// balanced counts the VIPs and the backends of each service.
func (w *world) balanced() (vips, backends map[string]int) {
	vips, backends = map[string]int{}, map[string]int{}
	for _, m := range w.db.Rows(nbdb.LoadBalancerTable) {
		lb := m.(*nbdb.LoadBalancer)
		vips[lb.Name] += len(lb.Vips)
		for _, b := range lb.Vips {
			backends[lb.Name] += strings.Count(b, ":")
		}
	}
	return vips, backends
}

// A service with externalTrafficPolicy Local that asks for more than the limit has no policies for replies either. With
// all its endpoints and ports, a match could have megabytes.
func TestHostileReplies(t *testing.T) {
	w := newWorld(t)
	w.put(&cluster.Node{Name: "n1", UID: "uid-n1", Addrs: []netip.Addr{netip.MustParseAddr("172.18.0.3")},
		Gateway: &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n1", MAC: ipnet.MAC{2},
			IPs:      []netip.Prefix{netip.MustParsePrefix("172.18.0.3/16")},
			NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}})
	subnet := w.State.NodeSubnets["n1"][0].Addr().As4()
	for ports, want := range map[int]int{3: 1, 5000: 0} {
		s := hostile(1, 1, ports)
		s.ExternalLocal = true
		objects := endpointsOf(s, 200)
		for i := range objects[0].(*cluster.EndpointSlice).Endpoints {
			e := &objects[0].(*cluster.EndpointSlice).Endpoints[i]
			e.Node, e.Addr = "n1", netip.AddrFrom4([4]byte{subnet[0], subnet[1], subnet[2], byte(i + 10)})
		}
		w.put(append(objects, s)...)
		replies := 0
		for _, m := range w.db.Rows(nbdb.LogicalRouterPolicyTable) {
			if p := m.(*nbdb.LogicalRouterPolicy); p.Priority == names.PolicyReply {
				replies++
			}
		}
		if replies != want {
			t.Errorf("%d ports: %d policies for replies, want %d", ports, replies, want)
		}
	}
}

// A hundred services that ask for 500 addresses x 200 ports each, and some that ask for as much as they may have, cost
// what the limits say. The services of others have all that they ask for, and hear nothing.
func TestHostileServices(t *testing.T) {
	w := newWorld(t)
	limits := config.DefaultServices()
	var objects []cluster.Object
	for i := range 100 {
		objects = append(objects, hostile(i, 500, 200))
	}
	for i := 100; i < 103; i++ {
		s := hostile(i, 19, 200)
		objects = append(append(objects, s), endpointsOf(s, 1000)...)
	}
	many := serviceOf("many", 2)
	objects = append(append(objects, many), endpointsOf(many, limits.MaxEndpoints+7)...)
	for _, name := range []string{"a", "b", "c"} {
		s := serviceOf(name, 9, "192.0.2."+fmt.Sprint(name[0]))
		objects = append(append(objects, s), endpointsOf(s, 3)...)
	}
	w.put(objects...)
	vips, backends := w.balanced()
	for name, n := range vips {
		if n > limits.MaxVIPs || backends[name] > 10*limits.MaxEndpoints {
			t.Errorf("%s has %d VIPs and %d backends", name, n, backends[name])
		}
	}
	for i := range 103 {
		want := 200
		if i >= 100 {
			want = 4000
		}
		if n := vips[fmt.Sprintf("Service_evil%d/hostile%d_TCP", i/50, i)]; n != want {
			t.Errorf("hostile%d has %d VIPs, want %d", i, n, want)
		}
	}
	if n := backends["Service_default/many_TCP"]; n != limits.MaxEndpoints {
		t.Errorf("%d endpoints serve, want %d", n, limits.MaxEndpoints)
	}
	for _, name := range []string{"a", "b", "c"} {
		if lb := "Service_default/" + name + "_TCP"; vips[lb] != 2 || backends[lb] != 6 {
			t.Errorf("%s has %d VIPs and %d backends, want 2 and 6", lb, vips[lb], backends[lb])
		}
	}
	reasons := map[string]int{}
	for _, p := range w.reports {
		if p.Ref.Name.Namespace == "default" && p.Ref.Name.Name != "many" {
			t.Errorf("another hears of it: %v", p)
		}
		reasons[p.Reason]++
	}
	if reasons[service.ReasonTooManyVIPs] != 100 || reasons[service.ReasonTooManyEndpoints] != 4 || len(w.reports) != 104 {
		t.Errorf("reports %v", reasons)
	}
	if rows := len(w.db.Rows(nbdb.LoadBalancerTable)); rows != 107 {
		t.Errorf("%d load balancers, want one for each of 107 services", rows)
	}
}

// An external address is refused as soon as somebody has it, and served once nobody has it any more.
func TestExternalAddressesOfOthers(t *testing.T) {
	w := newWorld(t)
	const lb = "Service_default/a_TCP"
	told := func(what string, vips int, want string) {
		t.Helper()
		got := ""
		for _, p := range w.reports {
			if p.Reason != service.ReasonAddressRefused || p.UID != "uid-a" {
				t.Errorf("%s: problem %+v", what, p)
			}
			got, _, _ = strings.Cut(p.Message, ": want")
		}
		if n, _ := w.balanced(); n[lb] != vips || got != want {
			t.Errorf("%s: %d VIPs, %q; want %d, %q", what, n[lb], got, vips, want)
		}
	}
	addr := func(text string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(text)} }
	external := []string{"172.18.0.3", "172.18.0.4", "172.18.0.5", "172.19.0.1", "2001:db8::1"}
	w.put(serviceOf("a", 1, external...))
	told("nobody has them", 6, "")
	for i, o := range []cluster.Object{
		&cluster.Node{Name: "n1", UID: "n1", Addrs: addr(external[0])},
		&cluster.Node{Name: "n1", UID: "n1", ExternalAddrs: addr(external[1])},
		&cluster.EndpointSlice{Name: cluster.Name{Namespace: "default", Name: "kubernetes"}, Service: "kubernetes",
			Endpoints: []cluster.Endpoint{{Addr: addr(external[2])[0]}}},
		&cluster.Service{Name: cluster.Name{Namespace: "x", Name: "y"}, Created: 7, ClusterIPs: addr(external[3])},
		&cluster.ServiceCIDR{Name: "more", CIDRs: []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")}},
	} {
		as := []string{"an address of Node n1", "an address of Node n1", "an address of the API server",
			"the ClusterIP of Service x/y", "for ClusterIPs: in the range 2001:db8::/64"}[i]
		w.put(o)
		told(o.Ref().String(), 5, fmt.Sprintf("spec.externalIPs: %s: it is %s", external[i], as))
		w.drop(o)
		told(o.Ref().String()+" goes", 6, "")
	}
	w.put(&cluster.Node{Name: "n1", UID: "n1", Addrs: addr(external[0])},
		&cluster.Node{Name: "n2", UID: "n2", Addrs: addr(external[0])})
	told("two nodes", 5, "spec.externalIPs: 172.18.0.3: it is an address of Node n1")
	w.drop(&cluster.Node{Name: "n1"})
	told("one goes", 5, "spec.externalIPs: 172.18.0.3: it is an address of Node n2")
	w.put(serviceOf("a", 1, slices.Concat([]string{"10.128.0.9", "100.64.1.9"}, external)...))
	told("more of them", 5, "spec.externalIPs: 10.128.0.9: it is for pods: in --cluster-subnets 10.128.0.0/14, "+
		"spec.externalIPs: 100.64.1.9: it is for routers: in --join-subnet 100.64.1.0/24, "+
		"spec.externalIPs: 172.18.0.3: it is an address of Node n2")
}

// BenchmarkHostileServices has a hundred services come that ask for 500 addresses x 200 ports each, and one that asks
// for as much as it may have, with 10,000 endpoints.
func BenchmarkHostileServices(b *testing.B) {
	var events []cluster.Event
	for i := range 101 {
		s := hostile(i, 500, 200)
		objects := []cluster.Object{s}
		if i == 100 {
			s.ExternalIPs = s.ExternalIPs[:19]
			objects = append(objects, endpointsOf(s, 10000)...)
		}
		for _, o := range objects {
			events = append(events, cluster.Event{Ref: o.Ref(), New: o})
		}
	}
	schema := nb.NewSchema()
	b.ReportAllocs()
	for b.Loop() {
		c := core.New(config.DefaultCluster(), schema, all.Translators(schema))
		c.Start()
		if err := c.Plan(nb.NewDatabase(schema), append(c.Step(events).Dirty, c.Owners()...), nil).Err(); err != nil {
			b.Fatal(err)
		}
	}
}
