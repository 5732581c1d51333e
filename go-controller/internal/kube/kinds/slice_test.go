package kinds_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestDecodeEndpointSlice(t *testing.T) {
	ep := func(ready *bool, addresses ...string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	port := discoveryv1.EndpointPort{Name: ptr("http"), Port: ptr(int32(8080)), Protocol: ptr(corev1.ProtocolTCP)}
	decoded := cluster.EndpointPort{Name: "http", Protocol: cluster.TCP, Port: 8080}
	for what, c := range map[string]struct {
		slice    discoveryv1.EndpointSlice
		headless bool
		ready    []string
		ports    []cluster.EndpointPort
		problems [][2]string
	}{
		"ready, not ready and unknown": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{port},
			Endpoints: []discoveryv1.Endpoint{ep(ptr(true), "10.0.0.9"), ep(ptr(false), "10.0.0.8"), ep(nil, "10.0.0.7")}},
			ready: []string{"10.0.0.7", "10.0.0.9"}, ports: []cluster.EndpointPort{decoded}},
		"one endpoint twice": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{ep(nil, "10.0.0.7"), ep(nil, "10.0.0.7")}}, ready: []string{"10.0.0.7"}},
		"several addresses are one endpoint": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6,
			Endpoints: []discoveryv1.Endpoint{ep(nil, "fd01::7", "fd01::8")}}, ready: []string{"fd01::7"}},
		"for DNS only": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{port},
			Endpoints: []discoveryv1.Endpoint{ep(nil, "10.0.0.7")}}, headless: true},
		"names have no address": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN,
			Ports:     []discoveryv1.EndpointPort{port},
			Endpoints: []discoveryv1.Endpoint{ep(nil, "example.com")}}},
		"ports": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{
				{Port: ptr(int32(53)), Protocol: ptr(corev1.ProtocolUDP)}, {Name: ptr("all")},
				{Name: ptr("tcp"), Port: ptr(int32(1))}}},
			ports: []cluster.EndpointPort{{Protocol: cluster.UDP, Port: 53}, {Name: "tcp", Protocol: cluster.TCP, Port: 1}}},
		"bad ports": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{
				{Port: ptr(int32(0))}, {Port: ptr(int32(70000))}, {Port: ptr(int32(7)), Protocol: ptr(corev1.Protocol("ICMP"))},
				port}},
			ports: []cluster.EndpointPort{decoded},
			problems: [][2]string{{"InvalidEndpointPort", "port 0/TCP"}, {"InvalidEndpointPort", "port 70000/TCP"},
				{"InvalidEndpointPort", "port 7/ICMP"}}},
		"bad endpoints": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{ep(nil), ep(nil, "x"), ep(nil, "fe80::1%eth0"), ep(nil, "10.0.0.7")}},
			ready: []string{"10.0.0.7"},
			problems: [][2]string{{"InvalidEndpoint", "has no address"}, {"InvalidEndpoint", `"x" is not an IP address`},
				{"InvalidEndpoint", `"fe80::1%eth0"`}}},
		"bad endpoints that are not ready": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{ep(ptr(false), "x")}},
			problems: [][2]string{{"InvalidEndpoint", `"x" is not an IP address`}}},
		"empty": {slice: discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}},
	} {
		c.slice.ObjectMeta = meta("default", "web-abc", nil)
		c.slice.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		if c.headless {
			c.slice.Labels["service.kubernetes.io/headless"] = ""
		}
		got, problems := decode[*cluster.EndpointSlice](t, &c.slice)
		var ready []string
		for _, e := range got.Endpoints {
			if e.Conditions.Has(cluster.Ready) {
				ready = append(ready, e.Addr.String())
			}
		}
		if got.Service != "web" || !slices.Equal(ready, c.ready) || !reflect.DeepEqual(got.Ports, c.ports) {
			t.Errorf("%s: %+v, want ready %v, ports %v", what, got, c.ready, c.ports)
		}
		wantProblems(t, what, problems, c.problems...)
	}
	orphan, problems := decode[*cluster.EndpointSlice](t,
		&discoveryv1.EndpointSlice{ObjectMeta: meta("default", "orphan", nil)})
	if orphan.Service != "" || len(problems) != 0 {
		t.Errorf("a slice without a service: %+v, %v", orphan, problems)
	}
}

// Everything that the API documents of an endpoint and a network needs; what
// is not said counts as the API says.
func TestDecodeEndpoint(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	all := discoveryv1.Endpoint{NodeName: ptr("n1"), Zone: ptr("a"),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-0"},
		Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "b"}, {Name: "a"}, {Name: "b"}},
			ForNodes: []discoveryv1.ForNode{{Name: "n2"}, {Name: "n1"}}}}
	for what, c := range map[string]struct {
		endpoint discoveryv1.Endpoint
		want     cluster.Endpoint
	}{
		"nothing said": {discoveryv1.Endpoint{},
			cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving}},
		"ready": {discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: yes,
			Serving: yes, Terminating: no}}, cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving}},
		"not ready": {discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: no,
			Serving: no, Terminating: no}}, cluster.Endpoint{}},
		"terminating": {discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: no,
			Serving: yes, Terminating: yes}}, cluster.Endpoint{Conditions: cluster.Serving | cluster.Terminating}},
		"of a maker that does not know serving": {
			discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: no}},
			cluster.Endpoint{Conditions: cluster.Serving}},
		"everything": {all,
			cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving, Node: "n1", Zone: "a", Pod: "web-0", ForZones: "a,b",
				ForNodes: "n1,n2"}},
		"a pod of the same namespace": {discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod",
			Namespace: "default", Name: "web-0"}}, cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving, Pod: "web-0"}},
		"a pod of another namespace": {discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod",
			Namespace: "other", Name: "web-0"}}, cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving}},
		"not a pod": {discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Node",
			Name: "n1"}}, cluster.Endpoint{Conditions: cluster.Ready | cluster.Serving}},
	} {
		c.endpoint.Addresses, c.want.Addr = []string{"10.0.0.7"}, netip.MustParseAddr("10.0.0.7")
		got, problems := decode[*cluster.EndpointSlice](t,
			&discoveryv1.EndpointSlice{ObjectMeta: meta("default", "web", nil), Endpoints: []discoveryv1.Endpoint{c.endpoint}})
		if !slices.Equal(got.Endpoints, []cluster.Endpoint{c.want}) || len(problems) != 0 {
			t.Errorf("%s: %+v, %v, want %+v", what, got.Endpoints, problems, c.want)
		}
	}
}

// An endpoint costs little memory, whatever its slice says of it.
func TestMemoryOfEndpoints(t *testing.T) {
	const many, each, most = 1000, 10, 200 // slices, endpoints each, bytes an endpoint
	kept := make([]*cluster.EndpointSlice, 0, many)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range many {
		s := &discoveryv1.EndpointSlice{ObjectMeta: meta("default", "web", nil)}
		for j := range each {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("fd01::%x:%x", i, j)},
				NodeName: ptr(fmt.Sprintf("a-node-of-some-name-%d", j)), Zone: ptr(fmt.Sprintf("zone-%d", j)),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("some-deployment-6d5f7c9b8-%05d", i*each+j)},
				Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: fmt.Sprintf("zone-%d", j)}}}})
		}
		got, _ := decode[*cluster.EndpointSlice](t, s)
		kept = append(kept, got)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / (many * each); n > most {
		t.Errorf("%d bytes an endpoint, want at most %d", n, most)
	} else {
		t.Logf("%d bytes an endpoint", n)
	}
	runtime.KeepAlive(kept)
}
