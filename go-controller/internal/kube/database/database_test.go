package database

import (
	"errors"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func endpoints(name, service string, addrs ...string) *discoveryv1.EndpointSlice {
	nb, sb, six1, six2 := "nb", "sb", int32(6641), int32(6642)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Ports: []discoveryv1.EndpointPort{{Name: &nb, Port: &six1}, {Name: &sb, Port: &six2}, {Name: &sb}, {}},
	}
	for _, a := range addrs {
		no := false
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
			Conditions: discoveryv1.EndpointConditions{Ready: &no}})
	}
	return s
}

// TestAddresses finds the servers of one database, in both families, whatever the order of the endpoints.
func TestAddresses(t *testing.T) {
	kube := fake.NewSimpleClientset(endpoints("a", "ovn-db", "172.18.0.12", "172.18.0.11"),
		endpoints("b", "ovn-db", "fd00::1", "172.18.0.11", "host.example"), endpoints("c", "other", "172.18.0.99"))
	s, err := ParseService("sb-service", "ovn-kubernetes/ovn-db", "sb")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := s.Addresses(t.Context(), kube)
	want := []string{"ssl:172.18.0.11:6642", "ssl:172.18.0.12:6642", "ssl:[fd00::1]:6642"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Addresses: %q, %v, want %q", got, err, want)
	}
	s.Name = "missing"
	if _, _, err := s.Addresses(t.Context(), kube); !errors.Is(err, ErrNoServer) {
		t.Errorf("Addresses of a Service without endpoints: %v, want %v", err, ErrNoServer)
	}
}

// TestParseService refuses what is no name of a Service.
func TestParseService(t *testing.T) {
	for _, text := range []string{"", "ovn-db", "/ovn-db", "ovn-kubernetes/", "a/b/c"} {
		_, err := ParseService("sb-service", text, "sb")
		if err == nil || !strings.Contains(err.Error(), "want NAMESPACE/NAME") {
			t.Errorf("ParseService %q: %v, want an error that says what is right", text, err)
		}
	}
}
