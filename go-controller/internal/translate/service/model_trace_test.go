package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// populate adds subnets for the nodes, and pods: the backends, and a client on every node.
func (k *kube) populate() {
	pod := func(name string, node int, v4, v6 string) {
		ips := []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr(v4), 23), netip.PrefixFrom(netip.MustParseAddr(v6), 64)}
		net := annotation.PodNetwork{IPs: ips, MAC: ipnet.MACFor(ipnet.Addrs(ips))}
		for _, p := range ips {
			first, _ := ipnet.Nth(p.Masked(), 1)
			net.Gateways = append(net.Gateways, first)
		}
		k.pods = append(k.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: "u", Annotations: map[string]string{
				annotation.PodNetworks: annotation.MarshalPodNetworks(net),
				annotation.PodClassic:  annotation.MarshalPodClassic(net)}},
			Spec: corev1.PodSpec{NodeName: nodeName(node)}})
	}
	for i, n := range k.nodes {
		n.Annotations = map[string]string{annotation.NodeSubnets: annotation.MarshalNodeSubnets([]netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("10.128.%d.0/23", 2*i)),
			netip.MustParsePrefix(fmt.Sprintf("fd01:0:0:%x::/64", i))})}
		pod(clientName(n), i, fmt.Sprintf("10.128.%d.99", 2*i), fmt.Sprintf("fd01:0:0:%x::99", i))
	}
	for j := range outside {
		v4, v6 := backendAddrs(j)
		pod(backendName(j), j%someNodes, v4, v6)
	}
}

func backendName(j int) string { return fmt.Sprintf("b%d", j) }

func clientName(n *corev1.Node) string { return "client-" + n.Name }

// traced is a real OVN with a database that the translators made.
type traced struct {
	t   *testing.T
	sb  string
	c   *offline.Cluster
	mac map[string]string // of router ports, by name
}

func onNorthd(t *testing.T, k *kube) *traced {
	t.Helper()
	tr := &traced{t: t, sb: testkit.StartOVN(t), mac: map[string]string{}}
	made, db := k.translated(t)
	tr.c = made
	for _, m := range db.Rows(nbdb.LogicalRouterPortTable) {
		p := m.(*nbdb.LogicalRouterPort)
		tr.mac[p.Name] = p.MAC
	}
	var script strings.Builder
	if err := show.Write(&script, show.NBCtl, made.Schema, db); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "sh", "-ec", script.String())
	testkit.Run(t, "ovn-nbctl", "--timeout=60", "--wait=sb", "sync")
	return tr
}

// packet is the first packet of a connection from the client on a node.
func (tr *traced) packet(n *corev1.Node, v vip) string {
	proto, text, _ := strings.Cut(string(v), " ")
	dst := netip.MustParseAddrPort(text)
	network := tr.c.State.PodNetworks[cluster.PodPort{Pod: cluster.Name{Namespace: "x", Name: clientName(n)}}]
	ip, src := "ip4", network.IPs[0].Addr()
	if dst.Addr().Is6() {
		ip, src = "ip6", network.IPs[1].Addr()
	}
	l4 := strings.ToLower(proto)
	return fmt.Sprintf(`inport == "x_%s" && eth.src == %s && eth.dst == %s && %s.src == %s && %[4]s.dst == %[6]s && `+
		`ip.ttl == 64 && %[7]s && %[7]s.src == 40000 && %[7]s.dst == %[8]d`,
		clientName(n), network.MAC, tr.mac["rtos-"+n.Name], ip, src, dst.Addr(), l4, dst.Port())
}

// The lines in which ovn-trace reports load balancing, and the port where a packet leaves a switch or router.
var (
	tracedBackends = regexp.MustCompile(`ct_lb(?:_mark)?\(backends=([^;)]*)(?:; hash_fields="([^"]*)")?`)
	tracedAffinity = regexp.MustCompile(`commit_lb_aff\(.*timeout = (\d+)`)
	tracedOutput   = regexp.MustCompile(`output to "([^"]*)"`)
)

// answer is the result for a packet, in the words of the model.
func (tr *traced) answer(n *corev1.Node, v vip) string {
	tr.t.Helper()
	text := tr.trace(n, v)
	found := tracedBackends.FindAllStringSubmatch(text, -1)
	switch {
	case len(found) > 1:
		return fmt.Sprintf("balanced %d times", len(found))
	case len(found) == 1:
		backends := strings.Split(found[0][1], ",")
		slices.Sort(backends)
		return strings.Join(backends, ",") + sticks(text, found[0][2])
	case strings.Contains(text, "reject {"):
		return refused
	case tr.lastOutput(text) == "":
		return dropped
	}
	return "sent to " + tr.lastOutput(text)
}

// sticks is how long a client keeps its backend.
func sticks(trace, hashFields string) string {
	if t := tracedAffinity.FindStringSubmatch(trace); t != nil {
		return " for " + t[1] + "s"
	}
	if hashFields == "ip_src" {
		return " for good"
	}
	return ""
}

// lastOutput is the port at which a packet ended, without those of routers.
func (tr *traced) lastOutput(trace string) string {
	out := ""
	for _, m := range tracedOutput.FindAllStringSubmatch(trace, -1) {
		if out = m[1]; strings.HasPrefix(out, "stor-") || strings.HasPrefix(out, "rtos-") {
			out = ""
		}
	}
	return out
}

func (tr *traced) trace(n *corev1.Node, v vip, options ...string) string {
	tr.t.Helper()
	return testkit.Run(tr.t, "ovn-trace", append(append([]string{"--db=" + tr.sb, "--ct=new"}, options...), n.Name,
		tr.packet(n, v))...)
}

// arrives is the port where a connection to a backend must end: the pod's, or for a backend outside the cluster the
// management port of the client's node.
func arrives(n *corev1.Node, backend string) string {
	addr := netip.MustParseAddrPort(backend).Addr().String()
	for j := range outside {
		if v4, v6 := backendAddrs(j); addr == v4 || addr == v6 {
			return "x_" + backendName(j)
		}
	}
	return "k8s-" + n.Name
}

// sample is every step-th VIP of every node.
func (k *kube) sample(step int, take func(*corev1.Node, vip, string)) {
	for i, n := range k.nodes {
		answers := k.answers(n)
		for j, v := range slices.Sorted(maps.Keys(answers)) {
			if j%step == i%step {
				take(n, v, answers[v])
			}
		}
	}
}

// The flows that northd makes of the rows do with packets what Kubernetes promises, and deliver them to the very
// backends.
func TestOVNTraceAgrees(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := dice{rand.New(rand.NewPCG(8, 17))}.cluster()
	k.populate()
	tr := onNorthd(t, k)
	seen := map[string]int{}
	k.sample(3, func(n *corev1.Node, v vip, want string) {
		if have := tr.answer(n, v); have != want {
			t.Errorf("from %s to %s: Kubernetes says %q, ovn-trace %q:\n%s", n.Name, v, want, have, tr.trace(n, v))
		}
		seen["traced"]++
		if strings.Contains(string(v), "[") {
			seen["IPv6"]++
		}
		backends, sticky, timed := strings.Cut(want, " for ")
		if backends == refused || backends == dropped {
			seen[backends]++
			return
		}
		if timed && sticky != "good" {
			seen["timed"]++
			return // the packet by which OVN learns of a client is lost (services.md)
		}
		for _, b := range strings.Split(backends, ",") {
			if got, want := tr.lastOutput(tr.trace(n, v, "--lb-dst="+b)), arrives(n, b); got != want {
				t.Errorf("from %s to %s, backend %s: ends at %q, want %q", n.Name, v, b, got, want)
			}
			seen["delivered"]++
		}
	})
	t.Log(seen)
	for what, least := range map[string]int{"traced": 40, "IPv6": 15, refused: 5, "timed": 3, dropped: 5,
		"delivered": 40} {
		if seen[what] < least {
			t.Errorf("%s: %d, want %d or more: the sample proves too little", what, seen[what], least)
		}
	}
}
