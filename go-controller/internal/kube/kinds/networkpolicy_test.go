package kinds_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func policyOf(spec networkingv1.NetworkPolicySpec) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: meta("shop", "np", nil), Spec: spec}
}

// Which directions a policy isolates follows from policyTypes, or else from its rules (Kubernetes API).
func TestDecodePolicyTypes(t *testing.T) {
	in, out := networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	rules := networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
		Egress: []networkingv1.NetworkPolicyEgressRule{{}, {}}}
	for _, c := range []struct {
		types   []networkingv1.PolicyType
		rules   bool
		in, out int // rules, -1 when the direction is not isolated
	}{
		{nil, false, 0, -1}, {nil, true, 1, 2},
		{[]networkingv1.PolicyType{in}, true, 1, -1}, {[]networkingv1.PolicyType{out}, true, -1, 2},
		{[]networkingv1.PolicyType{out}, false, -1, 0}, {[]networkingv1.PolicyType{in, out}, true, 1, 2},
	} {
		spec := networkingv1.NetworkPolicySpec{}
		if c.rules {
			spec = rules
		}
		spec.PolicyTypes = c.types
		got, problems := decode[*cluster.NetworkPolicy](t, policyOf(spec))
		for _, d := range []struct {
			rules cluster.PolicyRules
			want  int
		}{{got.Ingress, c.in}, {got.Egress, c.out}} {
			if d.rules.Isolates != (d.want >= 0) || len(d.rules.Rules) != max(0, d.want) {
				t.Errorf("%v with rules %v: %+v, want %d rules", c.types, c.rules, d.rules, d.want)
			}
			for _, r := range d.rules.Rules {
				if !r.AnyPeer || !r.AnyPort {
					t.Errorf("an empty rule is %+v", r)
				}
			}
		}
		if len(problems) != 0 {
			t.Errorf("problems %v", problems)
		}
	}
}

// Ports are merged, peers keep their order, and a range has its exceptions taken out.
func TestDecodePolicyRule(t *testing.T) {
	udp, end := corev1.ProtocolUDP, int32(90)
	number := func(n int) *intstr.IntOrString { p := intstr.FromInt(n); return &p }
	name := intstr.FromString("http")
	ops := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "ops"}}
	got, problems := decode[*cluster.NetworkPolicy](t, policyOf(networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "api"}}}},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{
				{PodSelector: ops}, {NamespaceSelector: ops}, {NamespaceSelector: ops, PodSelector: ops},
				{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.100.7/24", Except: []string{"198.51.100.0/26"}}},
				{IPBlock: &networkingv1.IPBlock{CIDR: "2001:db8::/32"}},
			},
			Ports: []networkingv1.NetworkPolicyPort{{Port: number(443)}, {Port: number(80), EndPort: &end},
				{Port: number(85)}, {Port: number(91)}, {Port: &name}, {Port: &name}, {Protocol: &udp, Port: number(53)},
				{Protocol: &udp}},
		}},
	}))
	team := cluster.NewLabelSelector(cluster.Requirement{Key: "team", Operator: cluster.In, Values: []string{"ops"}})
	prefix := netip.MustParsePrefix
	want := cluster.PolicyRule{
		Peers: []cluster.PolicyPeer{
			{Pods: &cluster.PodSelector{Namespace: "shop", Pods: team}}, {Pods: &cluster.PodSelector{Namespaces: team}},
			{Pods: &cluster.PodSelector{Namespaces: team, Pods: team}},
			{Addresses: []netip.Prefix{prefix("198.51.100.64/26"), prefix("198.51.100.128/25")}},
			{Addresses: []netip.Prefix{prefix("2001:db8::/32")}},
		},
		Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, First: 80, Last: 91},
			{Protocol: cluster.TCP, First: 443, Last: 443}, {Protocol: cluster.TCP, Name: "http"}, {Protocol: cluster.UDP}},
	}
	if len(problems) != 0 || len(got.Ingress.Rules) != 1 || !reflect.DeepEqual(got.Ingress.Rules[0], want) {
		t.Errorf("problems %v, rules\n%+v\nwant\n%+v", problems, got.Ingress.Rules, want)
	}
	if got.Pods.String() != "app in (api,web)" || got.Subject().String() != "pods app in (api,web) of namespace shop" {
		t.Errorf("subject %s", got.Subject())
	}
}

// The limits of one policy.
const (
	maxPolicySelectors = 256
	maxPolicyRanges    = 4096
	maxPolicyPorts     = 1024
	maxPolicyRules     = 1024
)

// What is too much is left out, and said once. It never widens what is allowed.
func TestDecodeHugePolicy(t *testing.T) {
	var peers, blocks []networkingv1.NetworkPolicyPeer
	for i := range maxPolicySelectors + 2 {
		peers = append(peers, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"i": fmt.Sprint(i)}}})
	}
	all := networkingv1.IPBlock{CIDR: "::/0"}
	for i := range maxPolicyRanges / 100 {
		all.Except = append(all.Except, fmt.Sprintf("2001:db8:%x::/48", 2*i))
	}
	blocks = append(blocks, networkingv1.NetworkPolicyPeer{IPBlock: &all}, networkingv1.NetworkPolicyPeer{IPBlock: &all})
	for range maxPolicyRanges {
		all.Except = append(all.Except, "::/0")
	}
	var ports []networkingv1.NetworkPolicyPort
	for i := range maxPolicyPorts + 1 {
		n := intstr.FromInt(1 + 2*i)
		ports = append(ports, networkingv1.NetworkPolicyPort{Port: &n})
	}
	got, problems := decode[*cluster.NetworkPolicy](t, policyOf(networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}, {From: blocks}},
	}))
	first, second := got.Ingress.Rules[0], got.Ingress.Rules[1]
	if len(first.Peers) != maxPolicySelectors || len(first.Ports) != maxPolicyPorts || second.AnyPeer ||
		len(second.Peers) != 0 {
		t.Errorf("%d selectors, %d ports, %d blocks", len(first.Peers), len(first.Ports), len(second.Peers))
	}
	if len(problems) != 1 || problems[0].Reason != "PolicyTooLarge" ||
		!strings.Contains(problems[0].Message, "from[256]") {
		t.Errorf("problems %v, want one about the first that is too much", problems)
	}
}

// A policy costs no more than the products of what it names, either.
func TestDecodeProducts(t *testing.T) {
	rules := make([]networkingv1.NetworkPolicyIngressRule, maxPolicyRules+5)
	got, problems := decode[*cluster.NetworkPolicy](t, policyOf(networkingv1.NetworkPolicySpec{Ingress: rules}))
	if len(got.Ingress.Rules) != maxPolicyRules || len(problems) != 1 ||
		!strings.Contains(problems[0].Message, "spec.ingress[1024]: with it the policy has more than 1024 rules") {
		t.Errorf("%d rules, problems %v", len(got.Ingress.Rules), problems)
	}
	rule := networkingv1.NetworkPolicyEgressRule{}
	for i := range 200 {
		rule.To = append(rule.To, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"i": fmt.Sprint(i)}}})
	}
	for i := range 21 {
		name := intstr.FromString(fmt.Sprint("port", i))
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &name})
	}
	number := intstr.FromInt(80)
	rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &number})
	got, problems = decode[*cluster.NetworkPolicy](t, policyOf(networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{rule}}))
	if r := got.Egress.Rules[0]; len(r.Peers) != 200 || len(r.Ports) != 1 || r.AnyPort || r.Ports[0].First != 80 ||
		len(problems) != 1 || !strings.Contains(problems[0].Message, "4096 pairs") {
		t.Errorf("%d peers, ports %v, problems %v", len(r.Peers), r.Ports, problems)
	}
}

// A policy has a bounded number of names of ports, in all rules together. A rule with more allows nothing by name.
func TestDecodeManyPortNames(t *testing.T) {
	var rules []networkingv1.NetworkPolicyIngressRule
	for i := range 3 {
		var rule networkingv1.NetworkPolicyIngressRule
		for j := range 32 {
			name, number := intstr.FromString(fmt.Sprintf("p%d-%d", i, j)), intstr.FromInt(8000+2*j)
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &name},
				networkingv1.NetworkPolicyPort{Port: &number})
		}
		rules = append(rules, rule)
	}
	got, problems := decode[*cluster.NetworkPolicy](t, policyOf(networkingv1.NetworkPolicySpec{Ingress: rules}))
	for i, want := range []int{32, 32, 0} {
		if r := got.Ingress.Rules[i]; len(r.PortNames()) != want || len(r.Ports)-want != 32 || r.AnyPort {
			t.Errorf("rule %d has %d names and %d numbers, want %d and 32", i, len(r.PortNames()),
				len(r.Ports)-len(r.PortNames()), want)
		}
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "spec.ingress[2].ports: with it the policy has more "+
		"than 64 names of ports") {
		t.Errorf("problems %v, want one about the names", problems)
	}
}

// The first of two ports with a name and protocol counts, containers come before sidecars, and what is not valid does
// not count.
func TestNamedPorts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	port := func(name string, n int32, p corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: n, Protocol: p}
	}
	got, _ := decode[*cluster.Pod](t, &corev1.Pod{ObjectMeta: meta("shop", "p", nil), Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{RestartPolicy: &always, Ports: []corev1.ContainerPort{port("http", 1, ""), port("side", 2, "")}},
			{Ports: []corev1.ContainerPort{port("init", 3, "")}}},
		Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{port("http", 8080, ""), port("dns", 53, corev1.ProtocolUDP), port("", 9, "")}},
			{Ports: []corev1.ContainerPort{port("http", 8081, ""), port("zero", 0, ""), port("odd", 7, "ICMP")}}},
	}})
	want := cluster.NewNamedPorts(map[cluster.PortName]uint16{{Protocol: cluster.TCP, Name: "http"}: 8080,
		{Protocol: cluster.TCP, Name: "side"}: 2, {Protocol: cluster.UDP, Name: "dns"}: 53})
	if got.Ports != want {
		t.Errorf("ports %v, want %v", got.Ports, want)
	}
}
