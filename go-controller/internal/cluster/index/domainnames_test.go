package index

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func domainPolicy(name string, domains ...string) *cluster.TieredPolicy {
	p := &cluster.TieredPolicy{Name: name, Egress: []cluster.TieredRule{{Action: cluster.Accept}}}
	for _, d := range domains {
		p.Egress[0].Peers = append(p.Egress[0].Peers, cluster.PolicyPeer{Domain: d})
	}
	return p
}

func domain(name string, addrs ...string) *cluster.DomainName {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	return cluster.NewDomainName(name, list, "")
}

// said is the topics of a change, sorted.
func said(c cluster.Change) string {
	var out []string
	for _, n := range c.About(DomainNameAddresses) {
		out = append(out, n.Name)
	}
	for _, n := range c.About(PolicyWritten) {
		out = append(out, "policy "+n.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// What changes the addresses that rules accept for a name is a topic about it, and about the policies that have it.
func TestDomainNames(t *testing.T) {
	node := &cluster.Node{Name: "n", UID: "u", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	gateway := &cluster.Node{Name: "n", UID: "u", Gateway: &annotation.L3Gateway{
		IPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")}}}
	server := &cluster.EndpointSlice{Name: cluster.Name{Namespace: "default", Name: "kubernetes"}, Service: "kubernetes",
		Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("192.0.2.3")}}}
	another := &cluster.EndpointSlice{Name: cluster.Name{Namespace: "default", Name: "db"}, Service: "db",
		Endpoints: []cluster.Endpoint{{Addr: netip.MustParseAddr("192.0.2.4")}}}
	services := &cluster.ServiceCIDR{Name: "more", CIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.4/30")}}
	none := func(o cluster.Object) cluster.Event { return cluster.Event{Ref: o.Ref()} }
	is := func(o cluster.Object) cluster.Event { return cluster.Event{Ref: o.Ref(), New: o} }
	s := NewState(config.DefaultCluster())
	const all = "a, policy p"
	for i, step := range []struct {
		event            cluster.Event
		topics, accepted string
	}{
		{is(domain("a", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")), "",
			"[192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4]"},
		{is(domainPolicy("p", "a", "b", "a")), "a, b, policy p", "[192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4]"},
		{is(domainPolicy("q", "b")), "", "[192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4]"},
		{is(node), all, "[192.0.2.2 192.0.2.3 192.0.2.4]"},
		{is(gateway), all, "[192.0.2.1 192.0.2.3 192.0.2.4]"},
		{is(another), "", "[192.0.2.1 192.0.2.3 192.0.2.4]"},
		{is(server), all, "[192.0.2.1 192.0.2.4]"},
		{is(services), "a, b, policy p, policy q", "[192.0.2.1]"},
		{none(services), "a, b, policy p, policy q", "[192.0.2.1 192.0.2.4]"},
		{none(server), all, "[192.0.2.1 192.0.2.3 192.0.2.4]"},
		{none(gateway), all, "[192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4]"},
		{is(domain("a", "192.0.2.9")), all, "[192.0.2.9]"},
		{is(node), "", "[192.0.2.9]"}, // it had that address before
		{is(domainPolicy("p", "b")), "a", "[192.0.2.9]"},
		{none(domain("a")), "", "[]"},
		{none(domainPolicy("p")), "", "[]"},
		{none(domainPolicy("q")), "b", "[]"},
	} {
		c, _ := s.Apply(step.event)
		accepted, _ := DomainNamesOf(s).Addresses(s, "a")
		if got := said(c); got != step.topics || fmt.Sprint(accepted) != step.accepted {
			t.Errorf("step %d: accepted %v, topics %q; want %s, %q", i, accepted, got, step.accepted, step.topics)
		}
	}
	if x := DomainNamesOf(s); len(x.List())+len(x.holders)+len(x.held)+len(x.hashes)+len(x.named) > 0 {
		t.Errorf("without policies: %+v", x)
	}
}

// Whoever writes the records of a name can't open anything inside of the cluster with them.
func TestNamesInside(t *testing.T) {
	conf := config.DefaultCluster()
	conf.Subnets = append(conf.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
	s := NewState(conf)
	const own = "no address of another host"
	for text, want := range map[string]string{
		"127.0.0.1": own, "::1": own, "0.0.0.0": own,
		"0.1.2.3": own, "169.254.169.254": own,
		"fe80::1": own, "224.0.0.1": own,
		"ff02::1": own, "255.255.255.255": own,
		"::ffff:192.0.2.1": own, "::": own,
		"10.128.0.9": "in the cluster subnet 10.128.0.0/14", "fd01::9": "in the cluster subnet fd01::/48",
		"10.96.0.1": "in the range of services 10.96.0.0/16", "100.64.1.1": "in the join subnet 100.64.1.0/24",
		"fd98::1": "in the join subnet fd98::/64", "fd69::5": "in the network's own range fd69::/112",
		"192.0.2.1": "", "10.0.0.1": "", "2001:db8::1": "", "fd00::1": "",
	} {
		s.Apply(cluster.Event{Ref: cluster.DomainNameRef("a"), New: domain("a", text)})
		accepted, refused := DomainNamesOf(s).Addresses(s, "a")
		got := ""
		if len(refused) > 0 {
			got = refused[0].Why
		}
		if got != want || len(accepted)+len(refused) != 1 {
			t.Errorf("%s: %q, want %q; accepted %v", text, got, want, accepted)
		}
	}
}
