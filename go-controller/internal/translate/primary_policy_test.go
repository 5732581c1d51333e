package translate_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// dnsPolicy lets pods connect to UDP port 53 of those pods of kube-system that a selector selects.
func dnsPolicy(pods cluster.LabelSelector) cluster.NetworkPolicy {
	in := cluster.PodSelector{Namespace: "kube-system", Pods: pods}
	return cluster.NetworkPolicy{Name: cluster.Name{Namespace: "ns0", Name: "dns"}, UID: "p",
		Egress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{
			Peers: []cluster.PolicyPeer{{Pods: &in}},
			Ports: []cluster.PolicyPort{{Protocol: cluster.UDP, First: 53, Last: 53}},
		}}}}
}

// A rule that selects pods of the cluster's DNS allows its ClusterIPs in a primary network: those that it has, and as
// long as it selects any such pod.
func TestDNSInPrimaryNetworks(t *testing.T) {
	p, m := newPath(1), newMaster()
	m.begin(t)
	n := &cluster.Network{Name: names.Defined("ns0", "d0"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/28")}}}
	if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
		t.Fatal(err)
	}
	selects := cluster.NewLabelSelector(cluster.Requirement{Key: "a", Operator: cluster.In, Values: []string{"1"}})
	policy := dnsPolicy(selects)
	multi := &cluster.MultiNetworkPolicy{NetworkPolicy: policy, Named: []names.Network{n.Name},
		Networks: []names.Network{n.Name}}
	other := dnsPolicy(selects)
	other.Name.Namespace = "ns1" // it has no primary network
	tiered := &cluster.TieredPolicy{Name: "ns0/dns", UID: "c", Tier: cluster.AdminTier, Pods: cluster.PodSelector{
		Namespaces: cluster.NewLabelSelector(cluster.Requirement{Key: names.PrimaryLabel, Operator: cluster.Exists})},
		Egress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: policy.Egress.Rules[0]}}}
	events := []cluster.Event{}
	for _, o := range []cluster.Object{&policy, multi, &other, tiered,
		&cluster.Namespace{Name: "ns0", UID: "ns0", Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})},
		&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "ns0", Name: "d0"}, UID: "d", Network: n}} {
		events = append(events, p.set(o.Ref(), o))
	}
	seen := map[string]int{}
	for range 400 {
		if _, err := m.batch(events); err != nil {
			t.Fatal(err)
		}
		m.check(t)
		want := dnsWanted(p, selects)
		for o, rows := range m.rows {
			if o.Kind != names.KindPolicy && o.Kind != names.KindMultiPolicy && o.Kind != names.KindClusterPolicy {
				continue
			}
			for _, a := range []string{"10.96.0.1", "10.96.0.2", "fd02::1", "fd02::2"} {
				has := strings.Contains(describe(rows), a)
				if has != (want[a] && !strings.HasPrefix(o.Name, "ns1/")) {
					t.Fatalf("%s allows %s: %v, want %v:\n%s", o, a, has, !has, describe(rows))
				}
				seen[fmt.Sprint(o.Kind, a, has)]++
			}
		}
		o := p.dns()
		events = []cluster.Event{p.set(o.Ref(), o)}
		if p.chance(10) {
			events = []cluster.Event{p.set(o.Ref(), nil)}
		}
	}
	if len(seen) != 3*4*2 {
		t.Errorf("what the path came by: %v, want each address allowed and not, by each kind of policies", seen)
	}
}

// dnsWanted is the ClusterIPs that a selector of pods of kube-system is to allow, from the objects.
func dnsWanted(p *path, selects cluster.LabelSelector) map[string]bool {
	out := map[string]bool{}
	for _, o := range p.objects {
		e, ok := o.(*cluster.EndpointSlice)
		svc, is := p.objects[cluster.Ref{Kind: cluster.KindService, Name: cluster.Name{Namespace: "kube-system",
			Name: "kube-dns"}}].(*cluster.Service)
		if !ok || !is {
			continue
		}
		for _, ep := range e.Endpoints {
			pod, ok := p.objects[cluster.Ref{Kind: cluster.KindPod, Name: cluster.Name{Namespace: "kube-system",
				Name: ep.Pod}}].(*cluster.Pod)
			if ok && pod.WantsNetwork() && selects.Selects(pod.Labels) {
				for _, a := range svc.ClusterIPs {
					out[a.String()] = true
				}
			}
		}
	}
	return out
}

// A ClusterNetworkPolicy has rows in the primary networks of the namespaces that it selects, and in no others. Networks
// have tiers as long as one is about them.
func TestClusterPoliciesOfPrimaryNetworks(t *testing.T) {
	m := newMaster()
	m.begin(t)
	workers := cluster.NewLabelSelector(cluster.Requirement{Key: "worker", Operator: cluster.Exists})
	policy := &cluster.TieredPolicy{Name: "guard", UID: "g", Tier: cluster.AdminTier, Pods: cluster.PodSelector{
		Namespaces: cluster.NewLabelSelector(cluster.Requirement{Key: "a", Operator: cluster.In, Values: []string{"1"}})},
		Ingress: []cluster.TieredRule{{PolicyRule: cluster.PolicyRule{AnyPeer: true, AnyPort: true}, Action: cluster.Deny}},
		Egress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: cluster.PolicyRule{AnyPort: true,
			Peers: []cluster.PolicyPeer{{Nodes: &workers}}}}}} // outside of the network's ranges
	np := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "ns0", Name: "np"}, UID: "np",
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPeer: true, AnyPort: true}}}}
	n := &cluster.Network{Name: names.Defined("ns0", "d0"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/28")}}}
	definition := &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "ns0", Name: "d0"}, UID: "d", Network: n}
	other := *n
	other.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.98.0.0/28")}}
	moved := &cluster.NetworkDefinition{Name: definition.Name, UID: "d", Network: &other}
	node := func(labels map[string]string) *cluster.Node {
		return &cluster.Node{Name: "n", UID: "n", Labels: cluster.NewLabels(labels),
			Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	}
	api := &cluster.Service{Name: cluster.APIService(), UID: "api", Ports: service(cluster.Name{}).Ports,
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")}}
	slice := func(addr string) *cluster.EndpointSlice {
		return &cluster.EndpointSlice{Name: cluster.APIService(), Service: "kubernetes",
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr(addr)}}}
	}
	apis := 0
	for i, step := range []struct {
		object cluster.Object
		gone   bool
		want   bool // the policy has rows in the network
	}{
		{object: np}, {object: definition}, {object: policy},
		{object: labelledNamespace("a", "1")},
		{object: labelledNamespace("a", "1", names.PrimaryLabel, ""), want: true},
		{object: labelledNamespace("a", "0", names.PrimaryLabel, "")},
		{object: labelledNamespace("a", "1", names.PrimaryLabel, ""), want: true},
		{object: moved, want: true},
		{object: api, want: true}, {object: slice("192.0.2.1"), want: true}, {object: node(nil), want: true},
		{object: node(map[string]string{"worker": ""}), want: true}, {object: slice("192.0.2.2"), want: true},
		{object: slice("192.0.2.1"), want: true}, {object: api, gone: true, want: true}, {object: api, want: true},
		{object: definition, gone: true},
		{object: definition, want: true},
		{object: policy, gone: true},
		{object: policy, want: true},
		{object: labelledNamespace(), gone: true},
	} {
		e := cluster.Event{Ref: step.object.Ref(), New: step.object}
		if step.gone {
			e.New = nil
		}
		if _, err := m.batch([]cluster.Event{e}); err != nil {
			t.Fatal(err)
		}
		m.check(t)
		guard := describe(m.rows[nb.Owner{Kind: names.KindClusterPolicy, Name: "guard"}])
		if got := strings.Contains(guard, "-in-ns0.d0"); got != step.want {
			t.Errorf("step %d: rows in the network %v, want %v:\n%s", i, got, step.want, guard)
		}
		if strings.Contains(guard, "egress-0-v4-api-in-ns0.d0") {
			apis++
		}
		isolation := describe(m.rows[nb.Owner{Kind: names.KindNetworkIsolation, Name: "ns0.d0"}])
		if got := strings.Contains(isolation, names.RoleUnblock); got != step.want {
			t.Errorf("step %d: tiers %v, want %v:\n%s", i, got, step.want, isolation)
		}
		rows := describe(m.rows[nb.Owner{Kind: names.KindPolicy, Name: "ns0/np"}])
		if strings.Contains(rows, "-in-ns0.d0") && strings.Contains(rows, "Tier:2") != step.want {
			t.Errorf("step %d: NetworkPolicies are in tier 2 %v, want %v:\n%s", i, !step.want, step.want, rows)
		}
	}
	if apis < 4 {
		t.Errorf("the policy was about the Kubernetes API %d times, want 4 or more", apis)
	}
}

// reports is what rows report, as one text.
func reports(rows translate.Rows) (out string) {
	for _, r := range rows.Reports {
		out += r.Reason + ": " + r.Message
	}
	return out
}

func labelledNamespace(labels ...string) *cluster.Namespace {
	all := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	return &cluster.Namespace{Name: "ns0", UID: "ns0", Labels: cluster.NewLabels(all)}
}

// A NetworkPolicy whose pods wait for their primary network says so: there is none, or it is refused.
func TestPoliciesOfRefusedPrimaryNetworks(t *testing.T) {
	m := newMaster()
	m.begin(t)
	policy := dnsPolicy(cluster.LabelSelector{})
	definition := func(subnet string) *cluster.NetworkDefinition {
		n := &cluster.Network{Name: names.Defined("ns0", "d0"), Topology: cluster.Layer2, Primary: true,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix(subnet)}}}
		if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
			t.Fatal(err)
		}
		return &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "ns0", Name: "d0"}, UID: "d", Network: n}
	}
	taken := config.DefaultCluster().ServiceCIDRs[0].String()
	o := nb.Owner{Kind: names.KindPolicy, Name: "ns0/dns"}
	for _, step := range []struct {
		object cluster.Object
		want   string
	}{
		{&policy, ""},
		{labelledNamespace(names.PrimaryLabel, ""), "but no primary network"},
		{definition(taken), "network ns0/d0: it is refused"},
		{definition("10.99.0.0/28"), ""},
		{definition(taken), "network ns0/d0: it is refused"},
	} {
		dirty := m.Step([]cluster.Event{{Ref: step.object.Ref(), New: step.object}}).Dirty
		rows, err := m.Rows(o)
		if err != nil {
			t.Fatal(err)
		}
		got := reports(rows)
		if (step.want == "") != (got == "") || !strings.Contains(got, step.want) {
			t.Errorf("%s: reports %q, want %q", step.object.Ref(), got, step.want)
		}
		if !slices.Contains(dirty, o) {
			t.Errorf("%s: nobody looks at %s again: %v", step.object.Ref(), o, dirty)
		}
	}
}
