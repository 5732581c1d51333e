package index

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// aboutTenants is the topics of a change, as text.
func aboutTenants(c cluster.Change) string {
	out := ""
	for _, t := range c.About(TenantOf) {
		out += "of " + t.Name + " "
	}
	tenants := c.About(TenantNamespaces)
	slices.SortFunc(tenants, cluster.CompareNames)
	for _, t := range tenants {
		out += t.Name + " "
	}
	return out
}

// Namespaces are their own tenants, unless they say something else; default and kube-system are global.
func TestTenants(t *testing.T) {
	conf := config.DefaultCluster()
	conf.Multitenant = true
	s := NewState(conf)
	for _, step := range []struct{ what, name, tenant, topics, want string }{
		{"comes", "a", "", "of a a ", "a:[a]"},
		{"joins one that is not there", "b", "c", "of b c ", "a:[a] c:[b]"},
		{"is joined by its name", "c", "", "of c c ", "a:[a] c:[b c]"},
		{"joins", "a", "c", "of a a c ", "c:[a b c]"},
		{"changes otherwise", "a", "c", "", "c:[a b c]"},
		{"is global", "b", "*", "of b * c ", "*:[b] c:[a c]"},
		{"is global by its name", "default", "", "of default * ", "*:[b default] c:[a c]"},
		{"is isolated", "default", "default", "of default * default ", "*:[b] c:[a c] default:[default]"},
		{"goes", "default", "-", "of default default ", "*:[b] c:[a c]"},
	} {
		n := &cluster.Namespace{Name: step.name, UID: step.what, Tenant: step.tenant}
		e := cluster.Event{Ref: n.Ref(), New: n}
		if step.tenant == "-" {
			e.New = nil
		}
		c, _ := s.Apply(e)
		x := TenantsOf(s)
		var have []string
		for _, t := range x.List() {
			have = append(have, fmt.Sprintf("%s:%v", t, x.Namespaces(t)))
		}
		slices.Sort(have)
		if got := aboutTenants(c); got != step.topics || fmt.Sprint(have) != "["+step.want+"]" {
			t.Errorf("%s %s: %v, topics %q; want %s, %q", step.name, step.what, have, got, step.want, step.topics)
		}
	}
}

// The management ports of nodes reach all tenants.
func TestTenantsNodes(t *testing.T) {
	conf := config.DefaultCluster()
	conf.Multitenant = true
	s := NewState(conf)
	n := &cluster.Node{Name: "n", UID: "u"}
	if c, _ := s.Apply(cluster.Event{Ref: n.Ref(), New: n}); aboutTenants(c) != "" {
		t.Errorf("a node without subnets: topics %q", aboutTenants(c))
	}
	grant := []netip.Prefix{netip.MustParsePrefix("10.128.0.0/25"), netip.MustParsePrefix("fd01::/64")}
	if c := s.GrantNode(names.Own, "n", grant); aboutTenants(c) != "* " {
		t.Errorf("subnets are granted: topics %q", aboutTenants(c))
	}
	x := TenantsOf(s)
	if v4, v6 := x.Nodes(true), x.Nodes(false); fmt.Sprint(v4, v6) != "[10.128.0.2] [fd01::2]" {
		t.Errorf("addresses %v %v", v4, v6)
	}
	if c, _ := s.Apply(cluster.Event{Ref: n.Ref()}); aboutTenants(c) != "* " || len(x.Nodes(true)) > 0 {
		t.Errorf("the node goes: topics %q, addresses %v", aboutTenants(c), x.Nodes(true))
	}
}

// Without the mode there are no tenants.
func TestNoTenants(t *testing.T) {
	s := NewState(config.DefaultCluster())
	n := &cluster.Namespace{Name: "a", Tenant: "b"}
	if c, _ := s.Apply(cluster.Event{Ref: n.Ref(), New: n}); aboutTenants(c) != "" || TenantsOf(s).Of("a") != "" {
		t.Errorf("topics %q, tenant %q; want none", aboutTenants(c), TenantsOf(s).Of("a"))
	}
}
