package conformance

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// TestCount compares the answers of several rounds with those of the right namespace.
func TestCount(t *testing.T) {
	var s beside
	asked := []question{{"tcp 10.96.0.20:80", "red-"}, {"udp 203.0.113.10:8080", "outside "}}
	s.count("red", asked, []string{"red-1 10.77.0.4:1\n", "outside 1.2.3.4:1\n", "green-1 10.77.0.4:1\n", "error: no\n",
		"red-2 10.77.0.4:1\n"})
	if want := (Traffic{Connections: 5, Wrong: 2}); s.total != want {
		t.Errorf("counted %+v, want %+v", s.total, want)
	}
	want := "red asks tcp 10.96.0.20:80: green-1 10.77.0.4:1; red asks udp 203.0.113.10:8080: error: no"
	if have := strings.Join(s.wrong, "; "); have != want {
		t.Errorf("wrong answers: %s, want %s", have, want)
	}
}

// TestPlan asks a Service at each address that it has inside, and at each node's node port from outside.
func TestPlan(t *testing.T) {
	n := &node.Node{Config: node.Config{Addrs: []netip.Prefix{netip.MustParsePrefix("172.30.0.1/16"),
		netip.MustParsePrefix("fd30::1/64")}}}
	s := beside{bed: &bed{Cluster: &sandbox.Cluster{Nodes: []*node.Node{n}}}, inside: map[string][]question{}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.20", "fd02::20"},
		Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolUDP, Port: 80, NodePort: 30080}}}}
	if err := s.plan("red", service); err != nil {
		t.Fatal(err)
	}
	if have, want := texts(s.inside["red"]), "udp 10.96.0.20:80\nudp [fd02::20]:80\nudp 203.0.113.10:8080\n"+
		"udp [2001:db8:30::a]:8080"; have != want {
		t.Errorf("inside: %q, want %q", have, want)
	}
	if have, want := texts(s.outside), "udp 172.30.0.1:30080\nudp [fd30::1]:30080"; have != want {
		t.Errorf("outside: %q, want %q", have, want)
	}
	service.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
	if err := s.plan("red", service); err == nil {
		t.Error("a Service without ClusterIPs is no error")
	}
}

// TestTraffic adds up what several clusters counted.
func TestTraffic(t *testing.T) {
	o := Options{Work: t.TempDir()}
	for range 2 {
		if err := o.addTraffic(Traffic{Specs: 4, Connections: 3, Wrong: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := o.Traffic(); err != nil || have != (Traffic{Specs: 8, Connections: 6, Wrong: 2}) {
		t.Errorf("%+v, %v, want 8 specs and 6 connections, 2 of them wrong", have, err)
	}
}

func TestPrimaryDocument(t *testing.T) {
	var b strings.Builder
	run := Selection{Run: []string{mandatory, extra, alone}}
	d := PrimaryDocument{
		Version: "Kubernetes v1", System: sandbox.System{OVN: "26.03.1", OpenVSwitch: "4.0.0"},
		Traffic: Traffic{Specs: 3, Connections: 1234567},
		Beside: Document{Selection: run, Results: Results{mandatory: {State: Passed}, extra: {State: Passed},
			alone: {State: Passed}}},
		Inside: Document{Selection: run, Failing: map[string]string{extra: "eth0 is closed", alone: "eth0 is closed"},
			Results: Results{mandatory: {State: Passed}, extra: {State: Failed}, alone: {State: Failed}}},
	}
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"of Kubernetes v1, with OVN 26.03.1 and Open vSwitch 4.0.0",
		"While 3 of the specs ran, 1,234,567 connections were counted: all were answered",
		"| pass | 3 | 1 |", "| pass | 1 | 1 |",
		"### Fail inside a primary network\n\neth0 is closed (2):\n\n- DNS should be configured \\[Serial\\]\n- Services ",
		"### Pass inside a primary network\n\n- Services should serve \\[Conformance\\]\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the document:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Fail beside") {
		t.Errorf("there is a section about failures that there are not:\n%s", b.String())
	}
}
