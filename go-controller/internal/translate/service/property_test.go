package service_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kubeio"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
)

// The model: what the documentation of the API says of Services and
// EndpointSlices, on the API's own types, and nothing of ours.

// target is what a client connects to, "TCP 10.96.0.1:80".
func target(protocol corev1.Protocol, ip string, port int32) string {
	return fmt.Sprintf("%s %s", protocol, netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
}

// answers says who may answer clients on a node: for each target that somebody
// has, the backends, sorted. None is refusal; a target that is missing answers
// nothing, not even that.
func answers(services []*corev1.Service, slicesOf []*discoveryv1.EndpointSlice, node *corev1.Node) map[string][]string {
	holder, first := map[string]*corev1.Service{}, map[string]func() ([]string, bool){}
	for _, s := range services {
		for _, ip := range ips(s) {
			for _, p := range s.Spec.Ports {
				key := target(p.Protocol, ip, p.Port)
				if h := holder[key]; h == nil || before(s, h, ip) {
					holder[key] = s
					first[key] = func() ([]string, bool) {
						local := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal && slices.Contains(s.Spec.ClusterIPs, ip)
						return backends(endpoints(s, p, netip.MustParseAddr(ip).Is4(), slicesOf), node, local)
					}
				}
			}
		}
	}
	out := map[string][]string{}
	for key, f := range first {
		if b, served := f(); served {
			out[key] = b
		}
	}
	return out
}

// ips is the addresses on which a service answers in the cluster.
func ips(s *corev1.Service) []string {
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil // "no proxying"; "headless"
	}
	out := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Spec.LoadBalancerSourceRanges) == 0 { // ranges: nobody yet
		for _, i := range s.Status.LoadBalancer.Ingress {
			if i.IP != "" && (i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP) {
				out = append(out, i.IP)
			}
		}
	}
	return out
}

// before tells whether s has an address rather than h.
func before(s, h *corev1.Service, ip string) bool {
	a, b := slices.Contains(s.Spec.ClusterIPs, ip), slices.Contains(h.Spec.ClusterIPs, ip)
	switch {
	case a != b:
		return a
	case !s.CreationTimestamp.Equal(&h.CreationTimestamp):
		return s.CreationTimestamp.Before(&h.CreationTimestamp)
	}
	return s.Name < h.Name
}

// endpoint is an endpoint of a service port.
type endpoint struct {
	*discoveryv1.Endpoint
	at string
}

// endpoints is all endpoints of a service port.
func endpoints(s *corev1.Service, port corev1.ServicePort, is4 bool, all []*discoveryv1.EndpointSlice) []endpoint {
	var out []endpoint
	for _, e := range all {
		if e.Labels[discoveryv1.LabelServiceName] != s.Name || (e.AddressType == discoveryv1.AddressTypeIPv4) != is4 {
			continue
		}
		for _, p := range e.Ports {
			for i := range e.Endpoints {
				if *p.Name == port.Name && *p.Protocol == port.Protocol {
					out = append(out, endpoint{&e.Endpoints[i], netip.AddrPortFrom(netip.MustParseAddr(e.Endpoints[i].Addresses[0]), uint16(*p.Port)).String()})
				}
			}
		}
	}
	return out
}

// backends is those of the endpoints that get a client's connections; served is
// false when nobody answers it.
func backends(all []endpoint, node *corev1.Node, local bool) (at []string, served bool) {
	or := func(p *bool, otherwise bool) bool {
		if p == nil {
			return otherwise
		}
		return *p
	}
	only := func(in []endpoint, keep func(endpoint) bool) []endpoint {
		return slices.DeleteFunc(slices.Clone(in), func(e endpoint) bool { return !keep(e) })
	}
	ready := func(e endpoint) bool { return or(e.Conditions.Ready, true) }
	dying := func(e endpoint) bool { return or(e.Conditions.Serving, true) && or(e.Conditions.Terminating, false) }
	from := all
	if local {
		from = only(all, func(e endpoint) bool { return e.NodeName != nil && *e.NodeName == node.Name })
	}
	picked := only(from, ready)
	if !local {
		picked = hinted(picked, node)
	}
	if len(picked) == 0 {
		picked = only(from, dying)
	}
	for _, e := range picked {
		at = append(at, e.at)
	}
	slices.Sort(at)
	elsewhere := slices.ContainsFunc(all, ready) || slices.ContainsFunc(all, dying)
	return slices.Compact(at), len(at) > 0 || !elsewhere
}

// hinted is those of the ready endpoints that hints have a client prefer.
func hinted(ready []endpoint, node *corev1.Node) []endpoint {
	for _, mine := range []func(h *discoveryv1.EndpointHints) (given, mine bool){
		func(h *discoveryv1.EndpointHints) (bool, bool) {
			return len(h.ForNodes) > 0, slices.Contains(h.ForNodes, discoveryv1.ForNode{Name: node.Name})
		},
		func(h *discoveryv1.EndpointHints) (bool, bool) {
			return len(h.ForZones) > 0, slices.Contains(h.ForZones, discoveryv1.ForZone{Name: node.Labels[corev1.LabelTopologyZone]})
		},
	} {
		everyone := true
		var out []endpoint
		for _, e := range ready {
			given, fits := false, false
			if e.Hints != nil {
				given, fits = mine(e.Hints)
			}
			everyone = everyone && given
			if fits {
				out = append(out, e)
			}
		}
		if everyone && len(out) > 0 {
			return out
		}
	}
	return ready
}

// gen makes random objects that an API server would accept.
type gen struct{ *rand.Rand }

func (g gen) chance(percent int) bool { return g.IntN(100) < percent }

func one[T any](g gen, of ...T) T { return of[g.IntN(len(of))] }

func (g gen) service(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i), CreationTimestamp: metav1.Unix(int64(1700000000+g.IntN(3)), 0)}}
	s.Spec.Type = one(g, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	for _, ip := range []string{fmt.Sprintf("10.96.0.%d", 1+i), fmt.Sprintf("fd02::%d", 1+i)} {
		if g.chance(70) {
			s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip)
		}
	}
	if g.chance(10) {
		s.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
	}
	if len(s.Spec.ClusterIPs) > 0 {
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	for range g.IntN(3) {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, one(g, "192.0.2.1", "192.0.2.2", "2001:db8::1", "10.96.0.1", "fd02::2"))
	}
	for range g.IntN(3) {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
			IP: one(g, "192.0.2.1", "192.0.2.3", "2001:db8::3", ""), IPMode: one(g, nil, new(corev1.LoadBalancerIPModeVIP), new(corev1.LoadBalancerIPModeProxy))})
	}
	if g.chance(10) {
		s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"}
	}
	for j, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, corev1.ProtocolTCP} {
		if g.chance(50) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", j), Protocol: p, Port: int32(80 + j/3)})
		}
	}
	if len(s.Spec.Ports) == 0 {
		s.Spec.Ports = []corev1.ServicePort{{Name: "p0", Protocol: corev1.ProtocolTCP, Port: 80}}
	}
	s.Spec.SessionAffinity = one(g, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	s.Spec.InternalTrafficPolicy = one(g, nil, nil, new(corev1.ServiceInternalTrafficPolicyCluster), new(corev1.ServiceInternalTrafficPolicyLocal))
	s.Spec.ExternalTrafficPolicy = one(g, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	return s
}

func (g gen) slice(i, services int) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("e%d", i)}, AddressType: one(g, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)}
	if g.chance(95) {
		e.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", g.IntN(services))}
	}
	for j, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, corev1.ProtocolTCP} {
		if g.chance(70) {
			e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("p%d", j)), Protocol: new(p), Port: new(int32(8080 + g.IntN(2)))})
		}
	}
	allReady, zoned, noded := g.chance(40), g.chance(50), g.chance(40)
	for range g.IntN(5) {
		format := "10.128.0.%d"
		if e.AddressType == discoveryv1.AddressTypeIPv6 {
			format = "fd01::%d"
		}
		ep := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf(format, 3+g.IntN(6))}, NodeName: one(g, nil, new("n1"), new("n2"), new("n3"), new("n9"))}
		for _, c := range []**bool{&ep.Conditions.Ready, &ep.Conditions.Serving, &ep.Conditions.Terminating} {
			*c = one(g, nil, new(true), new(false), new(false))
		}
		if allReady {
			ep.Conditions = discoveryv1.EndpointConditions{Ready: new(true)}
		}
		ep.Hints = &discoveryv1.EndpointHints{}
		if zoned && g.chance(95) {
			ep.Hints.ForZones = one(g, []discoveryv1.ForZone{{Name: "a"}}, []discoveryv1.ForZone{{Name: "b"}}, []discoveryv1.ForZone{{Name: "c"}, {Name: "b"}})
		}
		if noded && g.chance(95) {
			ep.Hints.ForNodes = one(g, []discoveryv1.ForNode{{Name: "n1"}}, []discoveryv1.ForNode{{Name: "n2"}, {Name: "n3"}}, []discoveryv1.ForNode{{Name: "n9"}})
		}
		e.Endpoints = append(e.Endpoints, ep)
	}
	return e
}

// nodes are up to four nodes in up to two zones, or in none.
func (g gen) nodes() []*corev1.Node {
	var out []*corev1.Node
	zones := one(g, []string{""}, []string{"a", "b"}, []string{"", "a", "b"}, []string{"", "a"})
	for i := range 1 + g.IntN(4) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", 1+i), UID: types.UID(fmt.Sprintf("u-%d", i))}}
		if z := one(g, zones...); z != "" {
			n.Labels = map[string]string{corev1.LabelTopologyZone: z}
		}
		out = append(out, n)
	}
	return out
}

// The rows of random services have, for clients on every node, the backends that
// the model says, for whatever the model says that they can connect to, and
// nothing else.
func TestRowsAgreeWithTheModel(t *testing.T) {
	seen, places := map[string]int{}, map[string]int{}
	for seed := range uint64(600) {
		g := gen{rand.New(rand.NewPCG(seed, 17))}
		var services []*corev1.Service
		var endpoints []*discoveryv1.EndpointSlice
		var objects []cluster.Object
		take := func(obj any) {
			o, problems, ok := kubeio.Decode(obj)
			if !ok || len(problems) != 0 {
				t.Fatalf("seed %d: decoding %T: %v", seed, obj, problems)
			}
			objects = append(objects, o)
		}
		nodes := g.nodes()
		for _, n := range nodes {
			take(n)
		}
		for i := range 1 + g.IntN(5) {
			services = append(services, g.service(i))
			take(services[i])
		}
		for i := range g.IntN(10) {
			endpoints = append(endpoints, g.slice(i, len(services)))
			take(endpoints[i])
		}
		g.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		db := database(t, objects)
		for _, n := range nodes {
			want, got := answers(services, endpoints, n), rows(t, db, n.Name)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: for clients on %s %v the rows say\n%v\nthe model\n%v", seed, n.Name, n.Labels, got, want)
			}
			for _, b := range want {
				seen[fmt.Sprint(min(len(b), 2))]++
			}
		}
		for _, m := range db.Rows(nbdb.LoadBalancerTable) {
			_, place, _ := strings.Cut(m.(*nbdb.LoadBalancer).Name, "/")
			_, place, _ = strings.Cut(strings.TrimLeft(place, "s01234"), "_") // after the protocol
			_, place, _ = strings.Cut(place, "_")
			places[strings.TrimRight(place, "abn0123456789")]++
		}
	}
	// The model is not always of one opinion, and all sorts of rows were made.
	for _, n := range []string{"0", "1", "2"} {
		if seen[n] < 200 {
			t.Errorf("%d targets with %s backends, want at least 200: %v", seen[n], n, seen)
		}
	}
	for _, p := range []string{"", "zone-", "other-zones", "node-", "nodes-of-", "other-nodes"} {
		if places[p] < 10 {
			t.Errorf("%d rows for %q, want at least 10: %v", places[p], p, places)
		}
	}
}

func database(t *testing.T, objects []cluster.Object) *nb.Database {
	t.Helper()
	db, errs := offline.New(config.DefaultCluster(), objects).Database()
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	return db
}

// rows is what the load balancers of a node's switch say, in the model's terms.
func rows(t *testing.T, db *nb.Database, node string) map[string][]string {
	t.Helper()
	var lists []string
	for _, m := range db.Rows(nbdb.LogicalSwitchTable) {
		ls, ok := m.(*nbdb.LogicalSwitch)
		if !ok || ls.Name != node {
			continue
		}
		lists = slices.Clone(ls.LoadBalancer)
		for _, u := range ls.LoadBalancerGroup {
			group, ok := db.Row(nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: u}).(*nbdb.LoadBalancerGroup)
			if !ok {
				t.Fatalf("the switch of %s carries the group %s, which is not there", node, u)
			}
			lists = append(lists, group.LoadBalancer...)
		}
	}
	out := map[string][]string{}
	for _, u := range lists {
		lb, ok := db.Row(nb.Ref{Table: nbdb.LoadBalancerTable, UUID: u}).(*nbdb.LoadBalancer)
		if !ok || lb.Options["reject"] != "true" || len(lb.SelectionFields) == 0 {
			t.Fatalf("load balancer %+v", lb)
		}
		for vip, backends := range lb.Vips {
			key := strings.ToUpper(*lb.Protocol) + " " + vip
			if _, twice := out[key]; twice {
				t.Errorf("%s is in two rows for node %s", key, node)
			}
			out[key] = slices.DeleteFunc(strings.Split(backends, ","), func(s string) bool { return s == "" })
			slices.Sort(out[key])
			if len(out[key]) == 0 {
				out[key] = nil
			}
		}
	}
	return out
}
