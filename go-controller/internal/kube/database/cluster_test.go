package database

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	testcore "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/dbserver"
)

// TestComplete tells whether as many nodes have a server as the Service's label says.
func TestComplete(t *testing.T) {
	s := Service{Namespace: "ovn-kubernetes", Name: "ovn-db", Port: "nb"}
	for _, k := range []struct {
		label string
		nodes []string // of the endpoints
		want  bool
	}{
		{"", []string{"n1"}, true},
		{"1", []string{"n1"}, true},
		{"3", []string{"n1", "n2"}, false},
		{"3", []string{"n1", "n2", "n2"}, false}, // the pod of n2, and its successor
		{"3", []string{"n1", "n2", "n3"}, true},
		{"three", []string{"n1"}, true},
	} {
		addrs := []string{"172.18.0.11", "172.18.0.12", "172.18.0.13"}[:len(k.nodes)]
		slice := endpoints("a", "ovn-db", addrs...)
		slice.Labels[CountLabel] = k.label
		for i := range k.nodes {
			slice.Endpoints[i].NodeName = &k.nodes[i]
		}
		kube := fake.NewSimpleClientset(slice)
		found, all, err := s.Addresses(t.Context(), kube)
		if err != nil || all != k.want || len(found) != len(addrs) {
			t.Errorf("Addresses with label %q and nodes %v: %v, %t, %v, want %t", k.label, k.nodes, found, all, err, k.want)
		}
		byNode, err := Cluster{kube, s}.Addresses(t.Context())
		if want := netip.MustParseAddr("172.18.0.11"); err != nil || !slices.Equal(byNode["n1"], []netip.Addr{want}) {
			t.Errorf("Addresses by node: %v, %v, want %s for n1", byNode, err, want)
		}
	}
}

// TestNodes reads the nodes from the Service. A Service without the annotation names none by mistake.
func TestNodes(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: "ovn-db"}}
	c := Cluster{nil, Service{Namespace: "ovn-kubernetes", Name: "ovn-db"}}
	for text, want := range map[string][]string{"": nil, "n1": {"n1"}, "n1,n2,n3": {"n1", "n2", "n3"}} {
		service.Annotations = map[string]string{NodesAnnotation: text}
		c.Kube = fake.NewSimpleClientset(service)
		if got, err := c.Nodes(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("Nodes of %q: %v, %v, want %v", text, got, err, want)
		}
	}
	service.Annotations = nil
	c.Kube = fake.NewSimpleClientset(service)
	if got, err := c.Nodes(t.Context()); err == nil || !strings.Contains(err.Error(), NodesAnnotation) {
		t.Errorf("Nodes without the annotation: %v, %v, want an error that names it", got, err)
	}
	c.Kube = fake.NewSimpleClientset()
	if got, err := c.Nodes(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("Nodes without the Service: %v, %v, want that it is not found", got, err)
	}
}

// TestRegistry keeps a record in a ConfigMap, and loses nothing when two write at the same time.
func TestRegistry(t *testing.T) {
	kube := fake.NewSimpleClientset()
	d := dbserver.Databases()[1]
	r := Cluster{kube, Service{Namespace: "ovn-kubernetes", Name: "ovn-db"}}.Registry(d)
	if got, err := r.Read(t.Context()); err != nil || got.Cluster != "" || len(got.Servers) > 0 {
		t.Errorf("Read before there is a record: %+v, %v", got, err)
	}
	enter := func(node, id string) func(*dbserver.Record) error {
		return func(v *dbserver.Record) error {
			v.Cluster = "c1"
			if v.Servers == nil {
				v.Servers = map[string]string{}
			}
			v.Servers[node] = id
			return nil
		}
	}
	conflicts := 0
	for _, verb := range []string{"create", "update"} {
		kube.PrependReactor(verb, "configmaps", func(testcore.Action) (bool, runtime.Object, error) {
			conflicts++
			if conflicts%2 == 0 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, RecordName(d), nil)
		})
	}
	for node, id := range map[string]string{"n1": "s1", "n2.example": "s2"} {
		if err := r.Update(t.Context(), enter(node, id)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"n1": "s1", "n2.example": "s2"}
	if got, err := r.Read(t.Context()); err != nil || got.Cluster != "c1" || !maps.Equal(got.Servers, want) {
		t.Errorf("Read: %+v, %v, want %v", got, err, want)
	}
	if conflicts != 4 {
		t.Errorf("%d writes, want four: each of two met a conflict", conflicts)
	}
	refuse := errors.New("not this one")
	err := r.Update(t.Context(), func(v *dbserver.Record) error {
		v.Cluster = "c2"
		return refuse
	})
	if !errors.Is(err, refuse) {
		t.Errorf("Update: %v, want %v", err, refuse)
	}
	if got, err := r.Read(t.Context()); err != nil || got.Cluster != "c1" {
		t.Errorf("Read after a refused change: %+v, %v, want c1", got, err)
	}
}
