package translate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// tenantMaster is a master with tenants, nodes, and namespaces with two pods each.
func tenantMaster(nodes, namespaces int) *master {
	c := config.DefaultCluster()
	c.Multitenant = true
	m := newMasterOf(c)
	events := []cluster.Event{event(&cluster.Namespace{Name: "default"})}
	for i := range nodes {
		events = append(events, event(&cluster.Node{Name: fmt.Sprintf("n%d", i)}))
	}
	for i := range namespaces {
		ns := fmt.Sprintf("ns%d", i)
		events = append(events, event(&cluster.Namespace{Name: ns}))
		for j := range 2 {
			events = append(events, event(&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: fmt.Sprintf("p%d", j)},
				Node: fmt.Sprintf("n%d", (i+j)%nodes)}))
		}
	}
	m.Step(events)
	return m
}

// The fan-out laws of tenants: a change concerns the tenants of its namespace, and no other.
func TestFanOutOfTenants(t *testing.T) {
	namespace, tenant, pod := owners(names.KindNamespace), owners(names.KindTenant), owners(names.KindPod)
	for _, c := range []fanOut{
		{"a pod comes", event(&cluster.Pod{Name: cluster.Name{Namespace: "ns3", Name: "new"}, Node: "n0"}),
			[]nb.Owner{namespace("ns3"), pod("ns3/new")}},
		{"a namespace comes", event(&cluster.Namespace{Name: "new"}), []nb.Owner{namespace("new"), tenant("new")}},
		{"a namespace joins another", event(&cluster.Namespace{Name: "ns3", Tenant: "ns4"}),
			[]nb.Owner{namespace("ns3"), tenant("ns3"), tenant("ns4"), pod("ns3/p0"), pod("ns3/p1")}},
		{"a namespace becomes global", event(&cluster.Namespace{Name: "ns3", Tenant: cluster.GlobalTenant}),
			[]nb.Owner{namespace("ns3"), tenant("*"), tenant("ns3"), pod("ns3/p0"), pod("ns3/p1")}},
		{"a node comes", event(&cluster.Node{Name: "new"}),
			[]nb.Owner{{Kind: names.KindNode, Name: "new"}, tenant("*"), {Kind: names.KindIsolation, Name: "new"}}},
	} {
		if got := tenantMaster(50, 20).affected(t, c.e); !slices.Equal(got, c.want) {
			t.Errorf("%s: dirties %v, want %v", c.what, got, c.want)
		}
	}
}

// owners makes owners of a kind.
func owners(k names.Kind) func(name string) nb.Owner {
	return func(name string) nb.Owner { return nb.Owner{Kind: k, Name: name} }
}

// No owner's rows grow with the number of nodes or namespaces.
func TestRowsOfTenantsDoNotGrow(t *testing.T) {
	small, big := sizes(t, tenantMaster(2, 3)), sizes(t, tenantMaster(100, 50))
	for o, n := range small {
		if big[o] != n {
			t.Errorf("%s: %d rows and memberships in a small cluster, %d in a big one", o, n, big[o])
		}
	}
	if small[owners(names.KindTenant)("*")] == 0 || small[owners(names.KindTenant)("ns0")] == 0 {
		t.Errorf("tenants have no rows: %v", small)
	}
}

// A pod has no port until its Namespace is known: nobody knows before whom to keep from it.
func TestPodsWaitForTheirTenants(t *testing.T) {
	m := tenantMaster(1, 0)
	pod := owners(names.KindPod)("late/p")
	has := func() bool { return len(full(t, m.Core)[pod]) > 0 }
	m.Step([]cluster.Event{event(&cluster.Pod{Name: cluster.ParseName(pod.Name), Node: "n0"})})
	if has() {
		t.Error("a pod of an unknown Namespace has a port")
	}
	if dirty := m.affected(t, event(&cluster.Namespace{Name: "late"})); !slices.Contains(dirty, pod) || !has() {
		t.Errorf("the Namespace comes: dirties %v; the pod has a port: %v", dirty, has())
	}
}
