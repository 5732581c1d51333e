package index

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// Subjects of topics about tenants.
const (
	// TenantOf is about the tenant of a namespace; the key's name is the namespace.
	TenantOf cluster.Subject = "tenant of a namespace"
	// TenantNamespaces is about the namespaces of a tenant; the key's name is the tenant. For cluster.GlobalTenant it is
	// also about the addresses of the nodes' management ports.
	TenantNamespaces cluster.Subject = "namespaces of a tenant"
)

// Tenants answers which namespaces are of the same tenant. It is empty in a cluster without tenants.
type Tenants struct {
	of      map[string]string // by namespace
	members cluster.NameSets[string]
	nodes   [2]addressList // of their management ports, of IPv4 and IPv6
	before  []netip.Addr   // of the node, as they were before it changed
}

func newTenants() *Tenants {
	return &Tenants{of: map[string]string{}, members: cluster.NameSets[string]{}}
}

// TenantsOf is the index of a State.
func TenantsOf(s *cluster.State) *Tenants { return of(s, newTenants) }

// Of is the tenant of a namespace, "" for one that is not known and in a cluster without tenants.
func (x *Tenants) Of(namespace string) string { return x.of[namespace] }

// List lists the tenants that have namespaces, in no order.
func (x *Tenants) List() []string {
	out := make([]string, 0, len(x.members))
	for t := range x.members {
		out = append(out, t)
	}
	return out
}

// Namespaces lists the namespaces of a tenant, sorted.
func (x *Tenants) Namespaces(tenant string) []string {
	var out []string
	for _, n := range x.members[tenant].Sorted() {
		out = append(out, n.Name)
	}
	return out
}

// Nodes lists the addresses of one family of the nodes' management ports, sorted as text. The caller must not change
// the list.
func (x *Tenants) Nodes(is4 bool) []string { return x.nodes[side(is4)].list() }

// Kinds implements cluster.Index.
func (*Tenants) Kinds() []cluster.Kind {
	return []cluster.Kind{cluster.KindNamespace, cluster.KindNode}
}

// Before implements cluster.Index.
func (x *Tenants) Before(s *cluster.State, r cluster.Ref) {
	if r.Kind == cluster.KindNode {
		x.before = managementOf(s, r.Name.Name)
	}
}

// After implements cluster.Index.
func (x *Tenants) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	switch {
	case !s.Config.Multitenant:
		return nil
	case r.Kind == cluster.KindNode:
		return x.nodeChanged(managementOf(s, r.Name.Name))
	}
	old, now := x.of[r.Name.Name], ""
	if n := s.Namespaces[r.Name.Name]; n != nil {
		now = n.InTenant()
	}
	if old == now {
		return nil
	}
	out := topics(TenantOf, r.Name)
	if delete(x.of, r.Name.Name); old != "" {
		x.members.Put(old, r.Name, false)
		out = append(out, topics(TenantNamespaces, cluster.Name{Name: old})...)
	}
	if now != "" {
		x.of[r.Name.Name] = now
		x.members.Put(now, r.Name, true)
		out = append(out, topics(TenantNamespaces, cluster.Name{Name: now})...)
	}
	return out
}

func (x *Tenants) nodeChanged(now []netip.Addr) []cluster.Topic {
	before := x.before
	x.before = nil
	if slices.Equal(before, now) {
		return nil
	}
	for _, a := range before {
		x.nodes[side(a.Is4())].change(a.String(), -1)
	}
	for _, a := range now {
		x.nodes[side(a.Is4())].change(a.String(), 1)
	}
	return topics(TenantNamespaces, cluster.Name{Name: cluster.GlobalTenant})
}

// managementOf lists the addresses of a node's management port.
func managementOf(s *cluster.State, node string) []netip.Addr {
	if s.Nodes[node] == nil {
		return nil
	}
	var out []netip.Addr
	for _, p := range s.NodeSubnets[node] {
		if a, ok := subnet.Management(p); ok {
			out = append(out, a)
		}
	}
	return out
}
