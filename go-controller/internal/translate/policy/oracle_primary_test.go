package policy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// inPrimary gives the namespace x of a random cluster a primary network, whose ranges blocks of rules are about.
func inPrimary(t *testing.T, k *policytest.Cluster, topology cluster.Topology) *cluster.Network {
	t.Helper()
	n := &cluster.Network{Name: names.Defined("x", "own"), Topology: topology, Primary: true}
	for _, v4 := range k.Families {
		s := config.ClusterSubnet{CIDR: netip.MustParsePrefix("2001:db8:2::/62"), NodeLength: 64}
		if v4 {
			s = config.ClusterSubnet{CIDR: netip.MustParsePrefix("192.0.2.0/24"), NodeLength: 26}
		}
		n.Subnets = append(n.Subnets, s)
	}
	if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15"),
		netip.MustParsePrefix("fd66::/64")}); err != nil {
		t.Fatal(err)
	}
	k.Namespaces[0].Labels[names.PrimaryLabel] = ""
	k.Multitenant = false
	k.More = append(k.More, &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "x", Name: "own"}, UID: "u",
		Network: n})
	return n
}

// primaryEnds lists the pods of the network with their addresses there, and addresses where the network has nobody.
func primaryEnds(s *cluster.State, k *policytest.Cluster, n names.Network, v4 bool) (pods, others []end) {
	for _, e := range k.Ends(v4) {
		if e.Pod == nil || e.Pod.Namespace != "x" {
			others = append(others, end{Name: "not in the network: " + e.Name, Addr: e.Addr})
			if e.Pod == nil { // a node is a peer of ClusterNetworkPolicies
				others[len(others)-1].Node = e.Node
			}
			continue
		}
		port := cluster.PodPort{Pod: cluster.Name{Namespace: "x", Name: e.Pod.Name}, Interface: names.PrimaryInterface}
		for _, a := range cluster.PodAddrs(s.In(n).PodNetworks[port]) {
			if a.Is4() == v4 {
				pods = append(pods, end{Name: e.Name, Addr: a, Pod: e.Pod, Node: e.Node})
			}
		}
	}
	return pods, others
}

// askPrimary asks the rows about a connection by the interfaces in a primary network.
func askPrimary(e *verdict.Evaluator, n *cluster.Network, c connection) (verdict.Verdict, error) {
	port := func(e end) string {
		if e.Pod == nil {
			return ""
		}
		return n.Name.LogicalPort("x", e.Pod.Name, names.PrimaryInterface)
	}
	p := verdict.Packet{Inport: port(c.From), Outport: port(c.To), Src: c.From.Addr, Dst: c.To.Addr, SrcPort: 40000,
		DstPort: uint16(c.Port), Protocol: map[corev1.Protocol]verdict.Protocol{corev1.ProtocolTCP: verdict.TCP,
			corev1.ProtocolUDP: verdict.UDP, corev1.ProtocolSCTP: verdict.SCTP}[c.Protocol]}
	if !c.Itself() {
		return e.Connection(p, netip.AddrPort{})
	}
	if p.Src = netip.MustParseAddr(names.HairpinSNAT4); p.Dst.Is6() {
		p.Src = netip.MustParseAddr(names.HairpinSNAT6)
	}
	at := n.Name.SharedSwitch()
	if n.Topology == cluster.Layer3 {
		at = n.Name.NodeSwitch(c.To.Node)
	}
	s, err := e.Stage(verdict.ToLport, at, p)
	return verdict.Verdict{Allowed: s.Allowed, Steps: []verdict.Step{s}}, err
}

// nowhere is the connection with ends that are on no node: no node is in the network, so that it is nobody's own.
func nowhere(c connection) connection {
	for _, e := range []*end{&c.From, &c.To} {
		if e.Pod != nil {
			e.Node = "nowhere"
		}
	}
	return c
}

// The rows of random policies do in a primary network what Kubernetes promises, with the addresses of pods there.
// Nodes are not in it. eth0 stays closed to all but the pod's own node, and its pods connect to nobody by it.
func TestPrimaryRowsDoWhatKubernetesPromises(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		d := policytest.NewDice(seed, 29)
		k := random(d)
		n := inPrimary(t, k.Cluster, []cluster.Topology{cluster.Layer2, cluster.Layer3}[seed%2])
		for _, s := range n.Subnets {
			k.ranges = append(k.ranges, s.CIDR)
		}
		c, err := k.translated()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, k.Text())
		}
		db, errs := c.Database()
		if len(errs) > 0 {
			t.Fatalf("seed %d: %v", seed, errs)
		}
		rows, answers := verdict.New(db), reach.New(c.Core, db)
		for range 100 {
			v4 := k.Families[d.IntN(len(k.Families))]
			pods, others := primaryEnds(c.State, k.Cluster, n.Name, v4)
			if len(pods) == 0 {
				break
			}
			try := primaryConnection(d, pods, others)
			got, err := askPrimary(rows, n, try)
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, try, err)
			}
			void := slices.ContainsFunc(got.Steps, func(s verdict.Step) bool { return len(s.Void) > 0 })
			if want := k.allowed(nowhere(try)); got.Allowed != want || void {
				t.Fatalf("seed %d: %s: Kubernetes says allowed %v, the rows %v, void %v: %+v\n%s", seed, try, want, got.Allowed,
					void, got.Steps, k.Text())
			}
			if try.From.Pod != nil && try.To.Pod != nil && !try.Itself() {
				if answer, err := asked(answers, try, d.Chance(50)); err != nil || answer.Allowed != got.Allowed {
					t.Fatalf("seed %d: %s: package reach says %+v, %v\n%s", seed, try, answer, err, k.Text())
				}
				seen["asked of package reach"]++
			}
			countPrimary(k, nowhere(try), got.Allowed, seen)
		}
		for range 100 {
			try := d.Connection(k.Cluster)
			tryLocked(t, k, rows, try, seen)
		}
	}
	t.Log(seen)
	for what, least := range map[string]int{"Ingress isolated, allowed true": 500, "Ingress isolated, allowed false": 500,
		"Egress isolated, allowed true": 500, "Egress isolated, allowed false": 500, "Ingress by cnp, allowed true": 200,
		"Ingress by cnp, allowed false": 200, "Egress by cnp, allowed true": 150,
		"Egress by cnp, allowed false": 200, "itself": 200, "locked in": 500,
		"locked out":             500,
		"asked of package reach": 1000} {
		if seen[what] < least {
			t.Errorf("%s: %d times, want %d or more: the clusters prove too little", what, seen[what], least)
		}
	}
}

// primaryConnection is one of a pod with a pod, or with somebody else.
func primaryConnection(d policytest.Dice, pods, others []end) connection {
	one, other := pods[d.IntN(len(pods))], pods[d.IntN(len(pods))]
	if d.Chance(30) {
		other = others[d.IntN(len(others))]
	}
	if d.Chance(50) {
		one, other = other, one
	}
	return connection{From: one, To: other,
		Protocol: []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP,
			corev1.ProtocolSCTP}[d.IntN(4)],
		Port: []int32{80, 80, 8080, 53, 9000, 443, 79, 8081}[d.IntN(8)]}
}

func countPrimary(k *kube, c connection, allowed bool, seen map[string]int) {
	if c.Itself() {
		seen["itself"]++
		return
	}
	for direction, e := range map[networkingv1.PolicyType][2]end{networkingv1.PolicyTypeIngress: {c.To, c.From},
		networkingv1.PolicyTypeEgress: {c.From, c.To}} {
		if e[0].Pod == nil {
			continue
		}
		if isolated, _ := k.networkPoliciesDecide(e[0], direction, e[1], c); isolated {
			seen[fmt.Sprintf("%s isolated, allowed %v", direction, allowed)]++
		}
		if k.clusterRule(e[0], direction, e[1], c) != "" {
			seen[fmt.Sprintf("%s by cnp, allowed %v", direction, allowed)]++
		}
	}
}

// tryLocked tries a connection in the cluster's own network, of which an end may be locked.
func tryLocked(t *testing.T, k *kube, rows *verdict.Evaluator, c connection, seen map[string]int) {
	t.Helper()
	locked := func(e end) bool { return e.Pod != nil && e.Pod.Namespace == "x" }
	if c.Itself() || !locked(c.From) && !locked(c.To) {
		return
	}
	got, err := policytest.Ask(rows, c)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	own := locked(c.To) && c.From.Pod == nil && c.From.Node == c.To.Node
	if got.Allowed && !own || own && !got.Allowed {
		t.Fatalf("%s: allowed %v by eth0\n%s", c, got.Allowed, k.Text())
	}
	if locked(c.To) {
		seen["locked in"]++
	}
	if locked(c.From) {
		seen["locked out"]++
	}
}
