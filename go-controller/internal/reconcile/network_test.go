package reconcile

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// tenantNamespaces is how many namespaces a tenant's network is primary in.
const tenantNamespaces = 3

// tenantNetwork is a ClusterUserDefinedNetwork, the primary network of its namespaces.
func tenantNetwork(t *testing.T, name string, topology cluster.Topology) *cluster.UserNetwork {
	t.Helper()
	n := &cluster.Network{Name: names.Defined("", name), Topology: topology, Primary: true, UserDefined: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")},
			{CIDR: netip.MustParsePrefix("fd77::/48")}}}
	if topology == cluster.Layer3 {
		n.Subnets[0].NodeLength, n.Subnets[1].NodeLength = 24, 64
	}
	if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/16"),
		netip.MustParsePrefix("fd66::/64")}); err != nil {
		t.Fatal(err)
	}
	selects := cluster.NewLabelSelector(cluster.Requirement{Key: "tenant", Operator: cluster.In, Values: []string{name}})
	return &cluster.UserNetwork{Name: cluster.Name{Name: name}, UID: name, Network: n, Selects: &selects, Protected: true}
}

// tenantObjects is what is in the network's namespaces: a pod on each of two nodes, and a Service of theirs.
func tenantObjects(name string) (namespaces, others []cluster.Object) {
	labels := cluster.NewLabels(map[string]string{"tenant": name, names.PrimaryLabel: ""})
	for i := range tenantNamespaces {
		ns := fmt.Sprintf("%s-%d", name, i)
		namespaces = append(namespaces, &cluster.Namespace{Name: ns, UID: ns, Labels: labels})
		service := cluster.Name{Namespace: ns, Name: "web"}
		others = append(others,
			&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: "a"}, UID: ns + "-a", Node: "n1"},
			&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: "b"}, UID: ns + "-b", Node: "n2"},
			&cluster.Service{Name: service, UID: ns, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 1, byte(i)})},
				Ports: []cluster.ServicePort{{Name: "http", Protocol: cluster.TCP, Port: 80}}})
	}
	return namespaces, others
}

// transactions is how many were committed until now.
func (b *bed) transactions() float64 {
	return testutil.ToFloat64(b.metrics.Transactions.WithLabelValues("ok"))
}

// Of a primary network that goes, nothing is left, and what stays is as it was before the network came. Its rows come
// in one transaction, and those of its pods and Services in another: ovn-northd computes all logical flows anew for
// each.
func TestPrimaryNetworkComesAndGoes(t *testing.T) {
	for _, topology := range []cluster.Topology{cluster.Layer2, cluster.Layer3} {
		t.Run(fmt.Sprint(topology), func(t *testing.T) {
			f := newFeed(someCluster()...)
			b := startBed(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), f)
			before, sent := b.content(), b.transactions()
			network := tenantNetwork(t, "red", topology)
			namespaces, others := tenantObjects("red")
			f.put(append(namespaces, network)...)
			b.eventually("routers", ".red_ovn_cluster_router ovn_cluster_router", b.names("Logical_Router"))
			b.eventually("transactions for the network", "1", func() string { return fmt.Sprint(b.transactions() - sent) })
			f.put(others...)
			b.eventually("ports of pods in the network", fmt.Sprint(2*tenantNamespaces), func() string {
				return fmt.Sprint(strings.Count(b.names("Logical_Switch_Port")(), names.PrimaryInterface))
			})
			b.eventually("transactions until pods have ports", "2", func() string { return fmt.Sprint(b.transactions() - sent) })
			b.stop()
			f = newFeed(slices.Collect(maps.Values(f.objects))...)
			b = startBed(t, b.remote, f)
			late := &cluster.Pod{Name: cluster.Name{Namespace: "red-0", Name: "late"}, UID: "late", Node: "n1"}
			f.put(late)
			b.eventually("the port of a pod that comes after a restart", "1", func() string {
				return fmt.Sprint(strings.Count(b.names("Logical_Switch_Port")(), "red-0_late_"+names.PrimaryInterface))
			})
			record := b.nbctl("--bare", "--columns=external_ids", "find", "address_set", "name="+names.FreedAddressSet)
			if strings.Contains(record, "10.77.") {
				t.Errorf("after a restart, addresses of living pods are recorded as freed: %s", record)
			}
			f.drop(append(others, append(namespaces, network, late)...)...)
			b.eventually("the database without the network", before, b.content)
		})
	}
}
