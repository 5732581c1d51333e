package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// theSchema is one for all tests: reading it from the database's schema takes milliseconds.
var theSchema = sync.OnceValue(nb.NewSchema)

// config is the configuration of a cluster of these families.
func (k *kube) config() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets, c.ServiceCIDRs, c.Multitenant = nil, nil, k.multitenant
	for _, v4 := range k.families {
		if v4 {
			c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23})
			c.ServiceCIDRs = append(c.ServiceCIDRs, netip.MustParsePrefix("10.96.0.0/16"))
		} else {
			c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
			c.ServiceCIDRs = append(c.ServiceCIDRs, netip.MustParsePrefix("fd02::/112"))
		}
	}
	return c
}

// translated is what the master makes of a cluster. A valid cluster has no problems.
func (k *kube) translated() (*offline.Cluster, error) {
	var objects []cluster.Object
	var errs []error
	decode := func(row kinds.Kind, obj runtime.Object) {
		o, problems := row.Decode(obj)
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("decoding: %w", p))
		}
		objects = append(objects, o)
	}
	for _, n := range k.nodes {
		decode(kinds.Node(), n)
	}
	for _, n := range k.namespaces {
		decode(kinds.Namespace(), n)
	}
	for _, p := range k.pods {
		decode(kinds.Pod(), p)
	}
	for _, p := range k.policies {
		decode(kinds.NetworkPolicy(), p)
	}
	for _, p := range k.clusterPolicies {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		errs = append(errs, err)
		decode(kinds.ClusterNetworkPolicy(), &unstructured.Unstructured{Object: u})
	}
	for name, list := range domains() {
		var addrs []netip.Addr
		for _, a := range list {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		objects = append(objects, cluster.NewDomainName(name, addrs, ""))
	}
	c := offline.NewOf(k.config(), theSchema(), all.Translators(theSchema()), objects)
	for _, p := range c.Problems {
		if p.Reason == "PriorityClash" || p.Reason == "DomainNameInside" {
			continue
		}
		errs = append(errs, fmt.Errorf("translating: %w", p))
	}
	return c, errors.Join(errs...)
}

// rows evaluates the rows that the master makes of a cluster.
func (k *kube) rows() (*verdict.Evaluator, error) {
	c, err := k.translated()
	if err != nil {
		return nil, err
	}
	db, errs := c.Database()
	return verdict.New(db), errors.Join(errs...)
}

// rowsAllow asks the rows about a connection.
func rowsAllow(e *verdict.Evaluator, c connection) (verdict.Verdict, error) {
	p := verdict.Packet{Inport: portOf(c.from), Outport: portOf(c.to), Src: c.from.addr, Dst: c.to.addr, SrcPort: 40000,
		DstPort: uint16(c.port), Protocol: map[corev1.Protocol]verdict.Protocol{corev1.ProtocolTCP: verdict.TCP,
			corev1.ProtocolUDP: verdict.UDP, corev1.ProtocolSCTP: verdict.SCTP, icmp: verdict.ICMP}[c.protocol]}
	if c.protocol == icmp {
		if p.SrcPort, p.ICMPType = 0, 8; p.Src.Is6() {
			p.Protocol, p.ICMPType = verdict.ICMPv6, 128
		}
	}
	if c.from.pod != nil && c.from.pod == c.to.pod { // through a service: without one, the packet stays in the pod
		p.Src = netip.MustParseAddr(names.HairpinSNAT4)
		if p.Dst.Is6() {
			p.Src = netip.MustParseAddr(names.HairpinSNAT6)
		}
		s, err := e.Stage(verdict.ToLport, c.to.node, p)
		return verdict.Verdict{Allowed: s.Allowed, Steps: []verdict.Step{s}}, err
	}
	return e.Connection(p, netip.AddrPort{})
}

// portOf is the logical port of an end, "" when routers lead there.
func portOf(e end) string {
	switch {
	case e.pod != nil:
		return names.Own.LogicalPort(e.pod.Namespace, e.pod.Name, "")
	case e.node != "" && !e.server:
		return names.ManagementPort(e.node)
	}
	return ""
}

// difference is what Kubernetes and the rows say of a connection, "" when they agree and no ACL is void.
func (k *kube) difference(e *verdict.Evaluator, c connection) string {
	v, err := rowsAllow(e, c)
	if err != nil {
		return fmt.Sprintf("%s: %v", c, err)
	}
	void, out := false, fmt.Sprintf("%s: Kubernetes says allowed %v, the rows %v", c, k.allowed(c), v.Allowed)
	for _, s := range v.Steps {
		if s.ACL != nil {
			out += fmt.Sprintf("\n  %s, %s: %s of %d %s", s.Switch, s.Stage, s.ACL.Action, s.ACL.Priority, s.ACL.Match)
		}
		for _, acl := range s.Void {
			void = true
			out += fmt.Sprintf("\n  %s, %s: void: %s", s.Switch, s.Stage, acl.Match)
		}
	}
	if v.Allowed == k.allowed(c) && !void {
		return ""
	}
	return out
}

// clone is a deep copy.
func (k *kube) clone() *kube {
	out := &kube{families: k.families, nodes: k.nodes, multitenant: k.multitenant}
	for _, n := range k.namespaces {
		out.namespaces = append(out.namespaces, n.DeepCopy())
	}
	for _, p := range k.pods {
		out.pods = append(out.pods, p.DeepCopy())
	}
	for _, p := range k.policies {
		out.policies = append(out.policies, p.DeepCopy())
	}
	for _, p := range k.clusterPolicies {
		out.clusterPolicies = append(out.clusterPolicies, p.DeepCopy())
	}
	return out
}

// drop removes an element.
func drop[T any](list *[]T, i int) { *list = slices.Delete(*list, i, i+1) }

// edits lists ways to make the cluster smaller.
func (k *kube) edits() []func(*kube) {
	out := k.clusterEdits()
	for i, p := range k.policies {
		out = append(out, func(k *kube) { drop(&k.policies, i) })
		for j, r := range p.Spec.Ingress {
			out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Ingress, j) })
			for m := range r.From {
				out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Ingress[j].From, m) })
			}
			for m := range r.Ports {
				out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Ingress[j].Ports, m) })
			}
		}
		for j, r := range p.Spec.Egress {
			out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Egress, j) })
			for m := range r.To {
				out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Egress[j].To, m) })
			}
			for m := range r.Ports {
				out = append(out, func(k *kube) { drop(&k.policies[i].Spec.Egress[j].Ports, m) })
			}
		}
		if len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) > 0 {
			out = append(out, func(k *kube) { k.policies[i].Spec.PodSelector.Reset() })
		}
	}
	for i, p := range k.pods {
		out = append(out, func(k *kube) { drop(&k.pods, i) })
		for key := range p.Labels {
			out = append(out, func(k *kube) { delete(k.pods[i].Labels, key) })
		}
		if len(p.Spec.InitContainers) > 0 {
			out = append(out, func(k *kube) { k.pods[i].Spec.InitContainers = nil })
		}
		for j := range p.Spec.Containers {
			out = append(out, func(k *kube) { drop(&k.pods[i].Spec.Containers, j) })
		}
	}
	for i, n := range k.namespaces {
		for key := range n.Labels {
			if key != "kubernetes.io/metadata.name" {
				out = append(out, func(k *kube) { delete(k.namespaces[i].Labels, key) })
			}
		}
		for key := range n.Annotations {
			out = append(out, func(k *kube) { delete(k.namespaces[i].Annotations, key) })
		}
	}
	return out
}

// again is a connection between the same ends in this cluster.
func (k *kube) again(c connection) (connection, bool) {
	found := 0
	for _, e := range k.ends(c.from.addr.Is4()) {
		if e.name == c.from.name {
			c.from = e
			found++
		}
		if e.name == c.to.name {
			c.to = e
			found++
		}
	}
	return c, found == 2
}

// shrink is the smallest cluster that was found in which Kubernetes and the rows differ about a connection.
func (k *kube) shrink(c connection) (*kube, connection) {
	for {
		smaller := slices.IndexFunc(k.edits(), func(edit func(*kube)) bool {
			try := k.clone()
			edit(try)
			again, there := try.again(c)
			rows, err := try.rows()
			if !there || err != nil || try.difference(rows, again) == "" {
				return false
			}
			k, c = try, again
			return true
		})
		if smaller < 0 {
			return k, c
		}
	}
}

// text is a cluster as YAML, without what does not matter to policies.
func (k *kube) text(t *testing.T) string {
	t.Helper()
	var out []string
	write := func(o any) {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	for _, n := range k.namespaces {
		write(n)
	}
	for _, p := range k.pods {
		p = p.DeepCopy()
		p.Annotations = nil
		write(p)
	}
	for _, p := range k.policies {
		write(p)
	}
	for _, p := range k.clusterPolicies {
		write(p)
	}
	return strings.Join(out, "---\n")
}

// compare compares what Kubernetes promises with what the rows do, for connections of a random cluster.
func compare(t *testing.T, seed uint64, connections int, seen map[string]int) {
	t.Helper()
	d := dice{rand.New(rand.NewPCG(seed, 23))}
	k := d.cluster()
	rows, err := k.rows()
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, k.text(t))
	}
	for range connections {
		c := d.connection(k)
		if k.difference(rows, c) != "" {
			small, again := k.shrink(c)
			rows, err := small.rows()
			if err != nil {
				t.Fatal(err)
			}
			t.Fatalf("seed %d: %s\n%s", seed, small.difference(rows, again), small.text(t))
		}
		k.count(c, seen)
	}
}

// count counts the cases that could have gone wrong.
func (k *kube) count(c connection, seen map[string]int) {
	what := "denied"
	if k.allowed(c) {
		what = "allowed"
	}
	seen[what]++
	if len(k.families) == 2 && c.from.addr.Is6() {
		seen[what+" IPv6 of two families"]++
	}
	for _, e := range []struct {
		own, other end
		direction  networkingv1.PolicyType
	}{{c.from, c.to, networkingv1.PolicyTypeEgress}, {c.to, c.from, networkingv1.PolicyTypeIngress}} {
		if e.own.pod == nil || c.from.name == c.to.name {
			continue
		}
		if e.direction == networkingv1.PolicyTypeIngress && k.multitenant {
			seen[fmt.Sprintf("tenants let in %v", k.tenantLets(e.own, e.other, c))]++
		}
		without := &kube{namespaces: k.namespaces}
		for _, p := range k.policies {
			without.policies = append(without.policies, &networkingv1.NetworkPolicy{ObjectMeta: p.ObjectMeta,
				Spec: networkingv1.NetworkPolicySpec{PodSelector: p.Spec.PodSelector, PolicyTypes: policyTypes(p)}})
		}
		_, lets := k.networkPoliciesDecide(e.own, e.direction, e.other, c)
		if isolated, allowed := without.networkPoliciesDecide(e.own, e.direction, e.other, c); isolated && !allowed {
			seen[fmt.Sprintf("%s: isolated, rules allow %v", e.direction, lets)]++
		}
		for _, tier := range []v1alpha2.Tier{v1alpha2.AdminTier, v1alpha2.BaselineTier} {
			if decided, allowed := k.tierDecides(tier, e.own, e.direction, e.other, c); decided {
				seen[fmt.Sprintf("%s: tier %s allows %v", e.direction, tier, allowed)]++
			}
		}
	}
}

// policyTypes is what holds for a policy that may not say so.
func policyTypes(p *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	return slices.DeleteFunc([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		func(t networkingv1.PolicyType) bool { return !affects(p, t) })
}

// The rows of random policies do what Kubernetes promises.
func TestRowsDoWhatKubernetesPromises(t *testing.T) {
	const rounds, connections = 2000, 100
	seen := map[string]int{}
	for seed := range uint64(rounds) {
		compare(t, seed, connections, seen)
	}
	fresh := rand.Uint64()
	t.Logf("a new seed: %d", fresh)
	compare(t, fresh, connections, seen)
	t.Logf("in %d clusters: %v", rounds+1, seen)
	for what, least := range map[string]int{"allowed": 50000, "denied": 10000, "denied IPv6 of two families": 3000,
		"Ingress: isolated, rules allow true": 2000, "Egress: isolated, rules allow true": 1500,
		"Ingress: tier Admin allows true": 500, "Egress: tier Admin allows false": 1000,
		"Ingress: tier Baseline allows false": 500, "Egress: tier Baseline allows true": 500,
		"tenants let in false": 3000, "tenants let in true": 8000} {
		if seen[what] < least {
			t.Errorf("%s: %d times in %d clusters, want %d or more: the clusters prove too little", what, seen[what], rounds,
				least)
		}
	}
}
