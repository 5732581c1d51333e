package policy_test

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// inOwnNetwork is the pods x/a and x/b in the primary network x.own, and the cluster's DNS behind 10.96.0.10, whose pod
// has the Service's port 53 at 5353.
func inOwnNetwork(t *testing.T, others ...cluster.Object) []cluster.Object {
	t.Helper()
	n := &cluster.Network{Name: names.Defined("x", "own"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")}}}
	if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
		t.Fatal(err)
	}
	dns := cluster.DNSService()
	port := cluster.PortName{Protocol: cluster.UDP, Name: "dns"}
	out := twoPods(&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "x", Name: "own"}, UID: "u", Network: n},
		&cluster.Service{Name: dns, UID: "u", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
			Ports: []cluster.ServicePort{{Name: "udp", Protocol: cluster.UDP, Port: 53},
				{Name: "metrics", Protocol: cluster.TCP, Port: 9153}}},
		&cluster.Pod{Name: cluster.Name{Namespace: dns.Namespace, Name: "dns"}, UID: "u", Node: "n",
			Ports: cluster.NewNamedPorts(map[cluster.PortName]uint16{port: 5353})},
		&cluster.EndpointSlice{Name: cluster.Name{Namespace: dns.Namespace, Name: "s"}, Service: dns.Name,
			Ports:     []cluster.EndpointPort{{Name: "udp", Protocol: cluster.UDP, Port: 5353}},
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("10.128.0.9"), Pod: "dns"}}})
	out[1] = &cluster.Namespace{Name: "x", UID: "u", Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})}
	return append(out, others...)
}

// askFrom asks whether x/a may send a packet in its primary network. A packet without a destination is for x/b.
func askFrom(t *testing.T, objects []cluster.Object, p verdict.Packet) bool {
	t.Helper()
	dual := config.DefaultCluster()
	dual.Subnets = append(dual.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
	c := offline.NewOf(dual, theSchema(), all.Translators(theSchema()), objects)
	db, errs := c.Database()
	if len(errs) > 0 || len(c.Problems) > 0 {
		t.Fatal(errs, c.Problems)
	}
	n := names.Defined("x", "own")
	addr := func(pod string) netip.Addr {
		port := cluster.PodPort{Pod: cluster.Name{Namespace: "x", Name: pod}, Interface: names.PrimaryInterface}
		return c.State.In(n).PodNetworks[port].IPs[0].Addr()
	}
	p.Inport = n.LogicalPort("x", "a", names.PrimaryInterface)
	if !p.Src.IsValid() {
		p.Src = addr("a")
	}
	if !p.Dst.IsValid() {
		p.Dst, p.Outport = addr("b"), n.LogicalPort("x", "b", names.PrimaryInterface)
	}
	v, err := verdict.New(db).Connection(p, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Allowed
}

// denying is a ClusterNetworkPolicy that denies to connect to these peers.
func denying(r cluster.PolicyRule) *cluster.TieredPolicy {
	out := ruled("p", 1)
	out.Egress = []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: r}}
	return out
}

// A rule that names pods of the cluster's DNS is about its ClusterIP in a primary network: at the port of the Service,
// and however the rule says which: by the Service's number, or by the pods' number or name.
func TestRulesAboutDNSInPrimaryNetworks(t *testing.T) {
	for _, c := range []struct {
		port cluster.PolicyPort
		want bool // port 53 is denied
	}{
		{cluster.PolicyPort{Protocol: cluster.UDP, First: 53, Last: 53}, true},
		{cluster.PolicyPort{Protocol: cluster.UDP, First: 5000, Last: 6000}, true},
		{cluster.PolicyPort{Protocol: cluster.UDP, Name: "dns"}, true},
		{cluster.PolicyPort{Protocol: cluster.UDP}, true},
		{cluster.PolicyPort{Protocol: cluster.UDP, First: 54, Last: 54}, false},
		{cluster.PolicyPort{Protocol: cluster.UDP, Name: "other"}, false},
		{cluster.PolicyPort{Protocol: cluster.TCP}, false},
	} {
		rule := everybody()
		rule.AnyPort, rule.Ports = false, []cluster.PolicyPort{c.port}
		to := verdict.Packet{Protocol: verdict.UDP, DstPort: 53, Dst: netip.MustParseAddr("10.96.0.10")}
		if got := askFrom(t, inOwnNetwork(t, denying(rule)), to); got == c.want {
			t.Errorf("port %+v denied: DNS allowed %v", c.port, got)
		}
	}
	other := everybody()
	other.Peers[0].Pods.Namespace = "x"
	to := verdict.Packet{Protocol: verdict.UDP, DstPort: 53, Dst: netip.MustParseAddr("10.96.0.10")}
	if !askFrom(t, inOwnNetwork(t, denying(other)), to) {
		t.Error("a Deny of other pods denies DNS")
	}
}

// A NetworkPolicy that lets pods connect to a named port lets them ask DNS if its pods know the port by this name.
func TestNamedPortsOfDNSInPrimaryNetworks(t *testing.T) {
	elsewhere := everybody().Peers
	elsewhere[0].Pods.Namespace = "x"
	named := func(name string) cluster.PolicyPort { return cluster.PolicyPort{Protocol: cluster.UDP, Name: name} }
	for _, c := range []struct {
		what  string
		peers []cluster.PolicyPeer // nil for everybody
		port  cluster.PolicyPort
		want  bool // port 53 is allowed
	}{
		{"pods of DNS", everybody().Peers, named("dns"), true},
		{"everybody", nil, named("dns"), true},
		{"another name", everybody().Peers, named("other"), false},
		{"another protocol", everybody().Peers, cluster.PolicyPort{Protocol: cluster.TCP, Name: "dns"}, false},
		{"other pods", elsewhere, named("dns"), false},
	} {
		np := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "x", Name: "np"}, UID: "u",
			Egress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{
				{Peers: c.peers, AnyPeer: c.peers == nil, Ports: []cluster.PolicyPort{c.port}}}}}
		to := verdict.Packet{Protocol: verdict.UDP, DstPort: 53, Dst: netip.MustParseAddr("10.96.0.10")}
		if got := askFrom(t, inOwnNetwork(t, np), to); got != c.want {
			t.Errorf("%s: DNS allowed %v", c.what, got)
		}
	}
}

// A rule is about the ClusterIP of the Kubernetes API if it means the API server's addresses: any of them if it denies,
// and else all of them.
func TestRulesAboutTheAPIInPrimaryNetworks(t *testing.T) {
	ports := func(number uint16) []cluster.PolicyPort {
		return []cluster.PolicyPort{{Protocol: cluster.TCP, First: number, Last: number}}
	}
	ranges := func(texts ...string) (out []cluster.PolicyPeer) {
		for _, text := range texts {
			out = append(out, cluster.PolicyPeer{Addresses: []netip.Prefix{netip.MustParsePrefix(text)}})
		}
		return out
	}
	nodes := []cluster.PolicyPeer{{Nodes: &cluster.LabelSelector{}}}
	api := []cluster.Object{
		&cluster.Service{Name: cluster.APIService(), UID: "u", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
			Ports: []cluster.ServicePort{{Name: "https", Protocol: cluster.TCP, Port: 443}}},
		&cluster.EndpointSlice{Name: cluster.APIService(), Service: "kubernetes",
			Ports: []cluster.EndpointPort{{Name: "https", Protocol: cluster.TCP, Port: 6443}},
			Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("192.0.2.1")}, // of node n
				{Addr: netip.MustParseAddr("192.0.2.9")}}}}
	for _, c := range []struct {
		what   string
		action cluster.PolicyAction
		rule   cluster.PolicyRule
		want   bool // before a Deny of everything, unless the rule denies
	}{
		{"Deny of nodes", cluster.Deny, cluster.PolicyRule{Peers: nodes, AnyPort: true}, false},
		{"Deny of an address", cluster.Deny, cluster.PolicyRule{Peers: ranges("192.0.2.9/32"), Ports: ports(6443)}, false},
		{"Deny of the Service's port", cluster.Deny, cluster.PolicyRule{Peers: nodes, Ports: ports(443)}, false},
		{"Deny of another port", cluster.Deny, cluster.PolicyRule{Peers: nodes, Ports: ports(22)}, true},
		{"Deny of others", cluster.Deny, cluster.PolicyRule{Peers: ranges("192.0.2.8/32"), AnyPort: true}, true},
		{"Accept of a node", cluster.Accept, cluster.PolicyRule{Peers: nodes, AnyPort: true}, false},
		{"Accept of all", cluster.Accept, cluster.PolicyRule{Peers: ranges("192.0.2.0/24"), Ports: ports(6443)}, true},
	} {
		p := denying(cluster.PolicyRule{Peers: ranges("0.0.0.0/0"), AnyPort: true})
		p.Egress = append([]cluster.TieredRule{{Action: c.action, PolicyRule: c.rule}}, p.Egress...)
		if c.action == cluster.Deny {
			p.Egress = p.Egress[:1]
		}
		to := verdict.Packet{Protocol: verdict.TCP, DstPort: 443, Dst: netip.MustParseAddr("10.96.0.1")}
		if got := askFrom(t, inOwnNetwork(t, append(api, p)...), to); got != c.want {
			t.Errorf("%s: the API allowed %v", c.what, got)
		}
	}
}

// A rule that denies pods leaves no other way to them: not multicast, which all pods get, and not the link-local
// addresses that no set has.
func TestNoOtherWayToDeniedPods(t *testing.T) {
	accept := everybody()
	for _, c := range []struct {
		name   string
		policy *cluster.TieredPolicy
		want   bool
		packet verdict.Packet
	}{
		{"to the pod", denying(everybody()), false, verdict.Packet{}},
		{"to nobody", denying(everybody()), true, verdict.Packet{Dst: netip.MustParseAddr("10.77.9.9")}},
		{"multicast", denying(everybody()), false, verdict.Packet{Dst: netip.MustParseAddr("239.1.1.1")}},
		{"broadcast", denying(everybody()), false, verdict.Packet{Dst: netip.MustParseAddr("255.255.255.255")}},
		{"IPv6 multicast", denying(everybody()), false, verdict.Packet{Src: netip.MustParseAddr("fd77::1"),
			Dst: netip.MustParseAddr("ff02::1:2")}},
		{"multicast, accepted", ruled("p", 1, cluster.TieredRule{Action: cluster.Accept, PolicyRule: accept}), true,
			verdict.Packet{Dst: netip.MustParseAddr("239.1.1.1")}},
		{"link-local", ruled("p", 1, cluster.TieredRule{Action: cluster.Accept, PolicyRule: accept}), false,
			verdict.Packet{Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("fe80::2")}},
		{"from link-local", denying(everybody()), false,
			verdict.Packet{Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("fd77::2")}},
	} {
		c.packet.Protocol, c.packet.DstPort = verdict.UDP, 5000
		if got := askFrom(t, inOwnNetwork(t, c.policy), c.packet); got != c.want {
			t.Errorf("%s: allowed %v", c.name, got)
		}
	}
	// Without a ClusterNetworkPolicy everything is as before.
	if !askFrom(t, inOwnNetwork(t), verdict.Packet{Protocol: verdict.UDP, DstPort: 5000,
		Src: netip.MustParseAddr("fe80::1"), Dst: netip.MustParseAddr("fe80::2")}) {
		t.Error("link-local addresses are denied without any ClusterNetworkPolicy")
	}
}

// A primary network has tiers while a ClusterNetworkPolicy is about it, or may have rows there whose removal waits. A
// database without tiers has none.
func TestTiersOfPrimaryNetworks(t *testing.T) {
	np := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "x", Name: "np"}, UID: "u",
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPeer: true, AnyPort: true}}}}
	elsewhere := denying(everybody())
	elsewhere.Pods.Namespaces = cluster.NewLabelSelector(cluster.Requirement{Key: "none", Operator: cluster.Exists})
	for _, c := range []struct {
		what          string
		policy        cluster.Object
		held, without bool
		want          int
	}{
		{"no ClusterNetworkPolicy", np, false, false, 0},
		{"one about other namespaces", elsewhere, false, false, 0},
		{"one", denying(everybody()), false, false, names.TierLast},
		{"one held back", np, true, false, names.TierLast},
		{"no tiers", denying(everybody()), true, true, 0},
	} {
		made := core.New(config.DefaultCluster(), theSchema(), all.Translators(theSchema()))
		made.State.WithoutTiers, made.State.Held.Tiered = c.without, c.held
		var events []cluster.Event
		for _, o := range inOwnNetwork(t, np, c.policy) {
			events = append(events, cluster.Event{Ref: o.Ref(), New: o})
		}
		made.Step(events)
		made.Start()
		unblocks := 0
		for _, p := range made.Plan(nb.NewDatabase(theSchema()), made.Owners(), nil).Plans {
			if p.Owner.Kind != names.KindNetworkIsolation && p.Owner.Kind != names.KindPolicy {
				continue
			}
			for _, r := range p.Rows {
				acl, ok := r.Model.(*nbdb.ACL)
				switch {
				case !ok:
				case acl.Priority == names.ACLUnblock:
					unblocks++
				case acl.Priority != names.ACLLinkLocal && acl.Tier != c.want:
					t.Errorf("%s: an ACL of %s is in tier %d, want %d: %s", c.what, p.Owner, acl.Tier, c.want, acl.Match)
				}
			}
		}
		if want := map[int]int{0: 0, names.TierLast: 3}[c.want]; unblocks != want {
			t.Errorf("%s: %d ACLs for cut connections, want %d", c.what, unblocks, want)
		}
	}
}
