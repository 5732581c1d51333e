package networks

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// primaryPolicy is a NetworkPolicy of the pods of a tenant with a label.
func primaryPolicy(ns, role, spec string) string {
	return fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %[2]s, namespace: %[1]s}
spec: {podSelector: {matchLabels: {role: %[2]s}}, %[3]s}
`, ns, role, spec)
}

// tenant is a tenant whose policies are tried. Its pods are server on n1, and friend and stranger on n2.
type tenant struct {
	*testing.T
	c  *sandbox.Cluster
	ns string
}

// pod is the name of a pod by its label.
func (t tenant) pod(role string) string {
	return fmt.Sprintf("%s-%d", t.ns, 1+slices.Index([]string{"server", "friend", "stranger"}, role))
}

func (t tenant) set(role, spec string) {
	t.Helper()
	machines.Kubectl(t.T, t.c, primaryPolicy(t.ns, role, spec), "apply", "-f", "-")
}

// unset deletes the policies.
func (t tenant) unset() {
	t.Helper()
	machines.Kubectl(t.T, t.c, "", "delete", "networkpolicy", "-n", t.ns, "--all")
}

// question is what a pod asks, and whether it is to be answered.
type question struct {
	protocol string
	to       netip.AddrPort
	answered bool
}

// asks waits until a pod is answered, or is not, as each question says. It asks them all at once.
func (t tenant) asks(from string, questions ...question) {
	t.Helper()
	machines.Eventually(t.T, t.pod(from)+" asks", func(ctx context.Context) string {
		var checks []func() string
		for _, q := range questions {
			checks = append(checks, func() string {
				cmd, err := machines.EchoFrom(ctx, t.c, t.ns, t.pod(from), "ask", q.protocol, q.to.String(), "1", "1s")
				if err != nil {
					return err.Error()
				}
				out, err := cmd.CombinedOutput()
				if got := err == nil && len(out) > 0; got != q.answered {
					return fmt.Sprintf("%s by %s, want an answer: %v, but %v: %s", q.to, q.protocol, q.answered, err, out)
				}
				return ""
			})
		}
		return machines.AtOnce(checks...)
	})
}

// reaches waits until a pod gets answers from another at all its addresses by just these protocols.
func (t tenant) reaches(from, to string, want reached) {
	t.Helper()
	var questions []question
	for _, a := range on(t.T, t.c, t.ns, t.pod(to), "ovn-udn1") {
		at := netip.AddrPortFrom(a, 8080)
		questions = append(questions, question{"tcp", at, want.tcp}, question{"udp", at, want.udp})
	}
	t.asks(from, questions...)
}

// at waits until a pod is answered at addresses outside of its network by TCP and UDP, or is not.
func (t tenant) at(from string, answered bool, addrs ...string) {
	t.Helper()
	var questions []question
	for _, a := range addrs {
		at := netip.MustParseAddrPort(a)
		questions = append(questions, question{"tcp", at, answered}, question{"udp", at, answered})
	}
	t.asks(from, questions...)
}

// api waits until a pod is answered by the API server, or is not: that talks TLS alone.
func (t tenant) api(from string, answered bool) {
	t.Helper()
	const want = "HTTP request to an HTTPS server"
	machines.Eventually(t.T, fmt.Sprintf("%s asks the API, want an answer: %v", t.pod(from), answered),
		func(ctx context.Context) string {
			got := machines.AskFrom(ctx, t.c, t.ns, t.pod(from), "tcp", netip.MustParseAddrPort("10.96.0.1:443"))
			if strings.Contains(got, want) != answered {
				return got
			}
			return ""
		})
}

// tryPrimaryPolicies has NetworkPolicies of two tenants: with a switch for all nodes, and with one for each.
func tryPrimaryPolicies(t *testing.T, c *sandbox.Cluster) {
	t.Run("of", func(t *testing.T) {
		for _, ns := range []string{"red", "blue"} {
			t.Run(ns, func(t *testing.T) {
				t.Parallel()
				n := tenant{t, c, ns}
				for _, role := range []string{"server", "friend", "stranger"} {
					machines.Kubectl(t, c, "", "label", "pod", "-n", ns, n.pod(role), "role="+role)
				}
				defer n.unset()
				n.tryIngress()
				n.tryEgress()
				n.tryClusterPolicies()
				if ns == "red" {
					n.fromOutside(30201)
				}
			})
		}
	})
	machines.InSync(t, c)
	out, err := c.NBCtl(t.Context(), "--columns=name", "find", "Port_Group",
		`external_ids:"k8s.ovn.org/owner-type"=NetworkIsolation`)
	if err != nil || out != "" {
		t.Errorf("without policies there are port groups left: %s, %v", out, err)
	}
}

// tryIngress has policies about who reaches the server.
func (t tenant) tryIngress() {
	all, none := reached{true, true}, reached{}
	outside, dns := []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"}, []string{"10.96.0.10:53", "[fd02::a]:53"}
	t.reaches("friend", "server", all)
	// A policy without rules: there is no ACL of a rule on the switch. What the server begins is answered nevertheless.
	t.set("server", "policyTypes: [Ingress]")
	for _, from := range []string{"friend", "stranger"} {
		t.reaches(from, "server", none)
	}
	t.reaches("server", "friend", all)
	t.reaches("stranger", "friend", all)
	t.at("server", true, slices.Concat(outside, dns)...)
	t.api("server", true)
	t.born()
	t.set("server", "ingress: [{from: [{podSelector: {matchLabels: {role: friend}}}]}]")
	t.reaches("friend", "server", all)
	t.reaches("stranger", "server", none)
	// A selector of other namespaces selects pods of the same network: nobody else is in it.
	t.set("server", "ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {role: stranger}}}]}]")
	t.reaches("stranger", "server", all)
	t.reaches("friend", "server", none)
	from := on(t.T, t.c, t.ns, t.pod("friend"), "ovn-udn1")
	t.set("server", fmt.Sprintf("ingress: [{from: [{ipBlock: {cidr: %s/32}}, {ipBlock: {cidr: '%s/128'}}]}]", from[0],
		from[1]))
	t.reaches("friend", "server", all)
	t.reaches("stranger", "server", none)
	t.set("server", "ingress: [{ports: [{protocol: UDP, port: 8080}, {port: 8079}]}]")
	for _, from := range []string{"friend", "stranger"} {
		t.reaches(from, "server", reached{udp: true})
	}
	t.unset()
	t.reaches("stranger", "server", all)
}

// tryEgress has policies about whom the server reaches.
func (t tenant) tryEgress() {
	all, none := reached{true, true}, reached{}
	outside, dns := []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"}, []string{"10.96.0.10:53", "[fd02::a]:53"}
	t.set("server", "policyTypes: [Egress]")
	t.reaches("server", "friend", none)
	t.at("server", false, slices.Concat(outside, dns)...)
	t.api("server", false)
	t.reaches("friend", "server", all) // it answers
	t.reaches("friend", "stranger", all)
	// A selector of the DNS pods allows the ClusterIP, at the Service's port.
	t.set("server", `egress: [{ports: [{port: 53}, {port: 53, protocol: UDP}], to: [{podSelector: {matchLabels:
		{k8s-app: kube-dns}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]}]`)
	t.at("server", true, dns...)
	t.at("server", false, outside...)
	t.api("server", false)
	t.reaches("server", "friend", none)
	t.set("server", `egress: [{to: [{ipBlock: {cidr: 10.96.0.1/32}}], ports: [{port: 443}]},
		{to: [{ipBlock: {cidr: 203.0.113.0/24}}, {ipBlock: {cidr: "2001:db8:30::/64"}}]},
		{to: [{podSelector: {matchLabels: {role: friend}}}], ports: [{port: 8080}]}]`)
	t.api("server", true)
	t.at("server", true, outside...)
	t.at("server", false, dns...)
	t.reaches("server", "friend", reached{tcp: true})
	t.reaches("server", "stranger", none)
	t.unset()
	t.reaches("server", "stranger", all)
	t.at("server", true, dns...)
}

// born makes a pod that the policy of the server isolates, while another sends to the addresses that it may get: nobody
// is answered. It becomes ready: the kubelet reaches it.
func (t tenant) born() {
	t.Helper()
	taken, family := 0, map[bool]string{true: "10.77.0.%d", false: "fd77::%x"}
	for _, role := range []string{"server", "friend"} { // the stranger chooses its addresses
		taken = max(taken, int(on(t.T, t.c, t.ns, t.pod(role), "ovn-udn1")[0].As4()[3]))
	}
	var asking []*late
	asked := map[string]bool{}
	for i := 1; i <= 2 && t.ns == "red"; i++ { // with layer3 the node's subnet is not known in advance
		for _, is4 := range []bool{true, false} {
			a := netip.MustParseAddr(fmt.Sprintf(family[is4], taken+i))
			asked[a.String()] = true
			asking = append(asking, askLate(t.T, t.c, t.ns, t.pod("friend"), netip.AddrPortFrom(a, 8080)))
		}
	}
	apply(t.T, t.c, probedPod(t.ns, "late", "n1", "role: server"), t.ns, "late")
	addrs := on(t.T, t.c, t.ns, "late", "ovn-udn1")
	for _, l := range asking {
		l.unanswered(t.T)
	}
	for _, a := range addrs {
		if t.ns == "red" && !asked[a.String()] {
			t.Errorf("the late pod has %s, and was asked at %v: want it to be among them", a, asked)
		}
	}
	machines.Kubectl(t.T, t.c, "", "delete", "pod", "-n", t.ns, "late", "--timeout=60s")
}
