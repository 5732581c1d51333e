package policytest

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// someNodes is how many nodes clusters have.
const someNodes = 3

// Cluster is a cluster as its API server has it.
type Cluster struct {
	Families        []bool // of pods: true for IPv4
	Nodes           []*corev1.Node
	Namespaces      []*corev1.Namespace
	Pods            []*corev1.Pod
	Policies        []*networkingv1.NetworkPolicy
	ClusterPolicies []*v1alpha2.ClusterNetworkPolicy
	Multitenant     bool             // namespaces are tenants
	More            []cluster.Object // as the master reads them: they take no part in what is shrunk
}

// New is a cluster of nodes alone.
func New(families []bool) *Cluster {
	k := &Cluster{Families: families}
	for i := range someNodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), UID: "u",
			Labels: map[string]string{"app": pick(NewDice(uint64(i), 1), "a", "b")}}}
		var subnets []netip.Prefix
		for _, v4 := range families {
			subnets = append(subnets, nodeSubnet(i, v4))
			n.Status.Addresses = append(n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nodeAddress(i, v4)})
		}
		n.Annotations = map[string]string{annotation.NodeSubnets: annotation.MarshalNodeSubnets(subnets)}
		k.Nodes = append(k.Nodes, n)
	}
	return k
}

// nodeSubnet is the i-th node's.
func nodeSubnet(i int, v4 bool) netip.Prefix {
	if v4 {
		return netip.MustParsePrefix(fmt.Sprintf("10.128.%d.0/23", 2*i))
	}
	return netip.MustParsePrefix(fmt.Sprintf("fd01:0:0:%x::/64", i))
}

// host is an address of the i-th node's subnet.
func host(i int, v4 bool, number uint64) netip.Addr {
	a, _ := ipnet.Nth(nodeSubnet(i, v4), number)
	return a
}

// Management is the source address of the i-th node's host when it connects to pods.
func Management(i int, v4 bool) netip.Addr { return host(i, v4, 2) }

// nodeAddress is the i-th node's own.
func nodeAddress(i int, v4 bool) string {
	return map[bool]string{true: fmt.Sprintf("172.18.0.%d", 10+i), false: fmt.Sprintf("2001:db8:18::%x", 10+i)}[v4]
}

// outsiders are addresses where nobody of the cluster is.
func outsiders() []netip.Addr {
	var out []netip.Addr
	for _, a := range []string{"192.0.2.1", "192.0.2.130", "198.51.100.7", "10.128.0.200", "10.77.0.1", "2001:db8:2::1",
		"2001:db8:2:8000::1", "fd01::200", "2001:db8:9::1"} {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// Domains is what DNS says of names. The second has addresses of the cluster's own.
func Domains() map[string][]string {
	return map[string][]string{
		"one.example.org": {"192.0.2.1", "2001:db8:2::1"},
		"two.example.org": {"198.51.100.7", "10.128.0.200", "10.128.0.3", "10.128.0.2", "172.18.0.10", "2001:db8:18::a",
			"fd01::200", "fd01::3", "fd01::2", "2001:db8:9::1"},
		"three.example.org": nil,
	}
}

// Clone is a deep copy.
func (k *Cluster) Clone() *Cluster {
	out := &Cluster{Families: k.Families, Nodes: k.Nodes, Multitenant: k.Multitenant, More: k.More}
	for _, n := range k.Namespaces {
		out.Namespaces = append(out.Namespaces, n.DeepCopy())
	}
	for _, p := range k.Pods {
		out.Pods = append(out.Pods, p.DeepCopy())
	}
	for _, p := range k.Policies {
		out.Policies = append(out.Policies, p.DeepCopy())
	}
	for _, p := range k.ClusterPolicies {
		out.ClusterPolicies = append(out.ClusterPolicies, p.DeepCopy())
	}
	return out
}

// Text is a cluster as YAML, without what does not matter to policies.
func (k *Cluster) Text() string {
	var out []string
	write := func(o any) {
		b, err := yaml.Marshal(o)
		if err != nil {
			b = fmt.Appendf(nil, "writing this object: %v\n", err)
		}
		out = append(out, string(b))
	}
	for _, n := range k.Namespaces {
		write(n)
	}
	for _, p := range k.Pods {
		p = p.DeepCopy()
		p.Annotations = nil
		write(p)
	}
	for _, p := range k.Policies {
		write(p)
	}
	for _, p := range k.ClusterPolicies {
		write(p)
	}
	return strings.Join(out, "---\n")
}
