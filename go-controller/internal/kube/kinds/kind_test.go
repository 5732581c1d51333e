package kinds_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Every kind that the cluster is made of has a complete row.
func TestAll(t *testing.T) {
	rows := kinds.All()
	if err := check(rows); err != nil {
		t.Error(err)
	}
	infos := cluster.Kinds()
	if len(infos) != len(rows) {
		t.Errorf("%d rows here, %d in package cluster: a kind needs both", len(rows), len(infos))
	}
	for _, info := range infos {
		kind := info.Kind
		k, ok := kinds.Find(rows, kind)
		if !ok || k.Namespaced != info.Namespaced {
			t.Errorf("kind %s has the row %+v, want one that is namespaced: %v", kind, k, info.Namespaced)
			continue
		}
		list, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k.NewList())
		if items, _ := list["items"].([]any); err != nil || len(items) != 0 {
			t.Errorf("kind %s: an empty list is %v, %v", kind, list, err)
		}
	}
	if k, ok := kinds.Find(rows, "Widget"); ok {
		t.Errorf("there is a row of Widgets: %+v", k)
	}
	if slice := kinds.EndpointSlice(); slice.APIVersion() != "discovery.k8s.io/v1" ||
		slice.Plural() != "endpointslices.discovery.k8s.io" {
		t.Errorf("EndpointSlices are %s of %s", slice.Plural(), slice.APIVersion())
	}
}

// A row that lacks something, or contradicts itself or another, is named.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*kinds.Kind){
		`row 0 of the kinds, "": field Kind is not set`:           func(k *kinds.Kind) { k.Kind = "" },
		`row 0 of the kinds, "Pod": field Resource is not set`:    func(k *kinds.Kind) { k.Resource.Version = "" },
		`field WatchedBy is not set`:                              func(k *kinds.Kind) { k.WatchedBy = nil },
		`field ValidName is not set`:                              func(k *kinds.Kind) { k.ValidName = nil },
		`field New is not set`:                                    func(k *kinds.Kind) { k.New = nil },
		`field NewList is not set`:                                func(k *kinds.Kind) { k.NewList = nil },
		`field ListWatch is not set`:                              func(k *kinds.Kind) { k.ListWatch = nil },
		`field Decode is not set`:                                 func(k *kinds.Kind) { k.Decode = nil },
		`field Decode does not decode the *v1.Pod that New makes`: func(k *kinds.Kind) { k.Decode = kinds.Node().Decode },
		`field Decode makes "Pod name" of an object that is "Gizmo name"`: func(k *kinds.Kind) {
			k.Kind,
				k.Namespaced = "Gizmo", false
		},
		`row 1 of the kinds, "Pod" (pods): there is a row for it already, want one`: func(*kinds.Kind) {},
		`makes "Pod namespace/name" of an object that is "Pod2 namespace/name`:      func(k *kinds.Kind) { k.Kind = "Pod2" },
	} {
		k := kinds.Pod()
		change(&k)
		if err := check([]kinds.Kind{k, kinds.Pod()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// check says which rows are incomplete or contradict each other.
func check(rows []kinds.Kind) error {
	var errs []error
	seen, resources := map[cluster.Kind]bool{}, map[schema.GroupResource]bool{}
	for i, k := range rows {
		if err := checkRow(k); err != nil {
			errs = append(errs, fmt.Errorf("row %d of the kinds, %q: %w", i, k.Kind, err))
			continue
		}
		if seen[k.Kind] || resources[k.Resource.GroupResource()] {
			errs = append(errs, fmt.Errorf("row %d of the kinds, %q (%s): there is a row for it already, want one",
				i, k.Kind, k.Plural()))
		}
		seen[k.Kind], resources[k.Resource.GroupResource()] = true, true
	}
	return errors.Join(errs...)
}

// checkRow says what a row lacks.
func checkRow(k kinds.Kind) error {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"Kind", k.Kind != ""},
		{"Resource", k.Resource.Version != "" && k.Resource.Resource != ""},
		{"WatchedBy", len(k.WatchedBy) > 0},
		{"ValidName", k.ValidName != nil},
		{"New", k.New != nil},
		{"NewList", k.NewList != nil},
		{"ListWatch", k.ListWatch != nil},
		{"Decode", k.Decode != nil},
	} {
		if !field.given {
			return fmt.Errorf("field %s is not set, want all of a row", field.name)
		}
	}
	empty, want := k.New(), cluster.Ref{Kind: k.Kind, Name: cluster.Name{Name: "name"}}
	empty.SetName(want.Name.Name)
	if k.Namespaced {
		want.Name.Namespace = "namespace"
		empty.SetNamespace(want.Name.Namespace)
	}
	o, _ := k.Decode(empty)
	if o == nil {
		return fmt.Errorf("field Decode does not decode the %T that New makes", empty)
	}
	if got := o.Ref(); got != want {
		return fmt.Errorf("field Decode makes %q of an object that is %q", got, want)
	}
	return nil
}

// A value that a decoder does not know is a Problem with the field, the value and what would be right. It leaves the
// object as if the value were not there.
func TestUnknownValues(t *testing.T) {
	mode, policy := corev1.LoadBalancerIPMode("Magic"), corev1.ServiceInternalTrafficPolicy("Rack")
	service := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: meta("default", "web", nil), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}},
		}}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		change(s)
		return s
	}
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: meta("", "n", nil)}
		change(n)
		return n
	}
	for _, c := range []struct {
		object runtime.Object
		same   runtime.Object // with an object that has nothing there; nil when the value itself is kept
		reason string
		text   string
	}{
		{service(func(s *corev1.Service) { s.Spec.Type = "Mesh" }), nil, "InvalidServiceType",
			`spec.type: "Mesh", want ClusterIP, NodePort, LoadBalancer or ExternalName: `},
		{service(func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = &policy }), service(func(*corev1.Service) {}),
			"InvalidTrafficPolicy", `spec.internalTrafficPolicy: "Rack", want Cluster or Local: Cluster is used`},
		{service(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "local" }), service(func(*corev1.Service) {}),
			"InvalidTrafficPolicy", `spec.externalTrafficPolicy: "local", want Cluster or Local: Cluster is used`},
		{service(func(s *corev1.Service) { s.Spec.SessionAffinity = "Cookie" }), service(func(*corev1.Service) {}),
			"InvalidSessionAffinity", `spec.sessionAffinity: "Cookie", want None or ClientIP: None is used`},
		{service(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 70000 }), service(func(*corev1.Service) {}),
			"InvalidServicePort", `spec.ports: nodePort 70000 of port 80/TCP: want a number from 1 to 65535`},
		{service(func(s *corev1.Service) { s.Status.LoadBalancer.Ingress[0].IPMode = &mode }),
			service(func(*corev1.Service) {}),
			"InvalidLoadBalancerIngress",
			`status.loadBalancer.ingress: ipMode of 192.0.2.1: "Magic", want VIP or Proxy: VIP is used`},
		{service(func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, -1
		}), service(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }),
			"InvalidHealthCheckNodePort", `spec.healthCheckNodePort: -1, want a number from 1 to 65535`},
		{&discoveryv1.EndpointSlice{ObjectMeta: meta("default", "s", nil), AddressType: "IPX"},
			&discoveryv1.EndpointSlice{ObjectMeta: meta("default", "s", nil)},
			"InvalidAddressType", `addressType: "IPX", want IPv4, IPv6 or FQDN: `},
		{&corev1.Pod{ObjectMeta: meta("default", "p", nil), Status: corev1.PodStatus{Phase: "Done"}},
			&corev1.Pod{ObjectMeta: meta("default", "p", nil)},
			"InvalidPodPhase", `status.phase: "Done", want Pending, Running, Succeeded, Failed or Unknown: `},
		{node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "maybe"}}
		}), node(func(*corev1.Node) {}),
			"InvalidNodeCondition", `status.conditions: status of condition Ready: "maybe", want True, False or Unknown: `},
		{node(func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0"}}
		}), node(func(*corev1.Node) {}),
			"InvalidNodeAddress",
			`status.addresses: InternalIP "10.0.0" is not an IP address such as 192.0.2.1: it is left out`},
	} {
		o, problems := decodeAny(c.object)
		wantProblems(t, c.text, problems, [2]string{c.reason, c.text})
		for _, p := range problems {
			if p.Ref != o.Ref() || p.UID == "" {
				t.Errorf("%s: the problem is of %s, UID %q", c.text, p.Ref, p.UID)
			}
		}
		if c.same != nil {
			if same, _ := decodeAny(c.same); !o.Equal(same) {
				t.Errorf("%s: decoded as %+v, want %+v", c.text, o, same)
			}
		}
	}
}

// Labels are part of pods, namespaces and nodes.
func TestDecodeLabels(t *testing.T) {
	for _, obj := range []kinds.Object{&corev1.Pod{}, &corev1.Namespace{}, &corev1.Node{}} {
		obj.SetName("x")
		without, _ := decodeAny(obj)
		obj.SetLabels(map[string]string{"app": "web"})
		with, _ := decodeAny(obj)
		if with.Equal(without) {
			t.Errorf("a %T with a label equals one without", obj)
		}
		want := cluster.NewLabels(map[string]string{"app": "web"})
		switch o := with.(type) {
		case *cluster.Pod:
			if o.Labels != want || !o.SamePlace(without.(*cluster.Pod)) {
				t.Errorf("pod %+v", o)
			}
		case *cluster.Namespace:
			if app, _ := o.Labels.Get("app"); app != "web" {
				t.Errorf("namespace %+v", o)
			}
		case *cluster.Node:
			if o.Labels != want {
				t.Errorf("node %+v", o)
			}
		}
	}
}
