package core_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

const (
	manyNamespaces = 25_000 // of 4 pods and 3 policies each
	manyNodes      = 1_000
	manyPodsEach   = 4
)

// manyPolicies is a cluster of 25,000 namespaces, 100,000 pods and 75,000 policies. In each namespace, one policy
// denies all, one lets two of its pods connect to the others, and one lets a range of addresses connect.
func manyPolicies() []cluster.Event {
	var out []cluster.Event
	put := func(o cluster.Object) { out = append(out, cluster.Event{Ref: o.Ref(), New: o}) }
	node := func(i int) (string, netip.Prefix) {
		s, _ := ipnet.Subnet(netip.MustParsePrefix("10.128.0.0/14"), 24, uint64(i))
		return fmt.Sprintf("n%04d", i), s
	}
	for i := range manyNodes {
		name, subnet := node(i)
		put(&cluster.Node{Name: name, UID: name, Annotated: annotation.MarshalNodeSubnets([]netip.Prefix{subnet})})
	}
	for i := range manyNamespaces {
		ns := fmt.Sprintf("ns%05d", i)
		put(&cluster.Namespace{Name: ns, UID: ns})
		for j := range manyPodsEach {
			number := i*manyPodsEach + j
			name, on := node(number % manyNodes)
			network := subnet.Attachment([]netip.Prefix{on}, []uint64{uint64(3 + number/manyNodes)}, "")
			put(&cluster.Pod{Name: cluster.Name{Namespace: ns, Name: fmt.Sprint("p", j)}, UID: fmt.Sprint(ns, j), Node: name,
				Labels:    cluster.NewLabels(map[string]string{"app": fmt.Sprint(j % 2)}),
				Annotated: annotation.MarshalPodNetworks(network), ClassicOK: true})
		}
		for j, p := range threePolicies(ns) {
			p.Name, p.UID = cluster.Name{Namespace: ns, Name: fmt.Sprint("np", j)}, fmt.Sprint(ns, "np", j)
			put(p)
		}
	}
	return out
}

func threePolicies(namespace string) []*cluster.NetworkPolicy {
	app := func(v string) cluster.LabelSelector {
		return cluster.NewLabelSelector(cluster.Requirement{Key: "app", Operator: cluster.In, Values: []string{v}})
	}
	ingress := func(peer cluster.PolicyPeer) cluster.PolicyRules {
		return cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{Peers: []cluster.PolicyPeer{peer},
			Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, First: 80, Last: 80}}}}}
	}
	return []*cluster.NetworkPolicy{
		{Ingress: cluster.PolicyRules{Isolates: true}, Egress: cluster.PolicyRules{Isolates: true}},
		{Pods: app("0"), Ingress: ingress(cluster.PolicyPeer{
			Pods: &cluster.PodSelector{Namespace: namespace, Pods: app("1")}})},
		{Pods: app("1"), Ingress: ingress(cluster.PolicyPeer{
			Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})},
	}
}

// BenchmarkPolicies computes all rows of the policies of manyPolicies from nothing: the selections, and then the rows
// of selectors, isolations, policies and pods.
func BenchmarkPolicies(b *testing.B) {
	events := manyPolicies()
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 24}}
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	for b.Loop() {
		schema := nb.NewSchema()
		x := core.New(c, schema, all.Translators(schema))
		x.Step(events)
		x.Start()
		rows := map[names.Kind]int{}
		for _, o := range x.Owners() {
			want, err := x.Rows(o)
			if err != nil {
				b.Fatal(err)
			}
			rows[o.Kind] += len(want.Rows)
		}
		if rows[names.KindPolicy] != 2*manyNamespaces || rows[names.KindPod] != manyPodsEach*manyNamespaces {
			b.Fatalf("rows by kind of owner: %v", rows)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		runtime.KeepAlive(x)
	}
}
