package index

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// BenchmarkPodsOfPolicies measures what the index keeps of 100,000 pods in 1,000 namespaces, in bytes a pod: with a
// policy that selects the pods of one namespace, and with another that names all pods as peers.
func BenchmarkPodsOfPolicies(b *testing.B) {
	const pods = 100_000
	for b.Loop() {
		s := NewState(config.DefaultCluster())
		PoliciesOf(s)
		for i := range pods {
			n := cluster.Name{Namespace: fmt.Sprint("ns", i/100), Name: fmt.Sprint("p", i)}
			p := &cluster.Pod{Name: n, Node: "n", Labels: cluster.NewLabels(map[string]string{"app": "web"})}
			s.Apply(cluster.Event{Ref: p.Ref(), New: p})
			hi, mid, lo := byte(i>>16), byte(i>>8), byte(i)
			s.GrantPod(names.Own, cluster.PodPort{Pod: n}, &annotation.PodNetwork{IPs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{10, hi, mid, lo}), 24),
				netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 12: 1, 13: hi, 14: mid, 15: lo}), 64)}})
		}
		policy := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "ns0", Name: "one"}, UID: "u",
			Ingress: cluster.PolicyRules{Isolates: true}}
		one := growth(s, policy) / pods
		b.ReportMetric(one, "bytes/pod")
		peers := *policy
		peers.Name.Name = "all"
		peers.Ingress.Rules = []cluster.PolicyRule{{AnyPort: true,
			Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{}}}}}
		b.ReportMetric(one+growth(s, &peers)/pods, "bytes/selected-pod")
	}
}

// growth is the bytes that the heap grows by when a policy comes.
func growth(s *cluster.State, p *cluster.NetworkPolicy) float64 {
	before := testkit.Heap()
	s.Apply(cluster.Event{Ref: p.Ref(), New: p})
	after := testkit.Heap()
	runtime.KeepAlive(s)
	return float64(after - before)
}
