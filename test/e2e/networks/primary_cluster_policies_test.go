package networks

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// ruled has one ClusterNetworkPolicy about a tenant's pods with a role, instead of the one before.
func (t tenant) ruled(tier, role, rules string) {
	t.Helper()
	machines.Kubectl(t.T, t.c, "", "delete", "clusternetworkpolicy", "--ignore-not-found", t.ns)
	machines.Kubectl(t.T, t.c, fmt.Sprintf(`
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: %s}
spec:
  tier: %s
  priority: 5
  subject: {pods: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}},
    podSelector: {matchLabels: {role: %[3]s}}}}
  %[4]s
`, t.ns, tier, role, rules), "apply", "-f", "-")
}

// named is the peer that has the pods of a role, of all namespaces.
func named(role string) string {
	return fmt.Sprintf("{pods: {namespaceSelector: {}, podSelector: {matchLabels: {role: %s}}}}", role)
}

// tryClusterPolicies has ClusterNetworkPolicies about the server of a tenant.
func (t tenant) tryClusterPolicies() {
	defer machines.Kubectl(t.T, t.c, "", "delete", "clusternetworkpolicy", "--ignore-not-found", t.ns)
	t.deniedPods()
	t.betweenTiers()
	t.deniedOutside()
}

// deniedPods has rules of tier Admin that deny pods: those that connect, and those that are connected to.
func (t tenant) deniedPods() {
	t.Helper()
	all, none := reached{true, true}, reached{}
	outside, dns := []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"}, []string{"10.96.0.10:53", "[fd02::a]:53"}
	t.reaches("stranger", "server", all)
	t.ruled("Admin", "server", fmt.Sprintf("ingress: [{action: Deny, from: [%s]}]", named("stranger")))
	t.reaches("stranger", "server", none)
	t.reaches("friend", "server", all)
	t.reaches("server", "stranger", all) // answers pass, though no policy allows anything
	t.at("server", true, slices.Concat(outside, dns)...)
	t.ruled("Admin", "server", "egress: [{action: Deny, to: [{namespaces: {}}]}]")
	t.reaches("server", "friend", none)
	t.at("server", false, dns...)
	t.at("server", true, outside...)
	t.reaches("friend", "server", all)
	// The pods of DNS know its port as 8080.
	t.ruled("Admin", "server", `egress: [{action: Deny, to: [{namespaces: {matchLabels: {kubernetes.io/metadata.name:
    kube-system}}}], protocols: [{udp: {destinationPort: {number: 8080}}}]}]`)
	t.reaches("server", "friend", all)
	var questions []question
	for _, a := range dns {
		at := netip.MustParseAddrPort(a)
		questions = append(questions, question{"tcp", at, true}, question{"udp", at, false})
	}
	t.asks("server", questions...)
}

// betweenTiers has a NetworkPolicy between rules of both tiers.
func (t tenant) betweenTiers() {
	t.Helper()
	all, none := reached{true, true}, reached{}
	t.set("server", "policyTypes: [Ingress]")
	friend := named("friend")
	t.ruled("Admin", "server", "ingress: [{action: Accept, from: ["+friend+"]}, {action: Pass, from: [{namespaces: {}}]}]")
	t.reaches("friend", "server", all)
	t.reaches("stranger", "server", none)
	t.ruled("Admin", "server", "ingress: [{action: Pass, from: ["+friend+"]}, {action: Deny, from: [{namespaces: {}}]}]")
	t.reaches("friend", "server", none)
	t.set("server", "ingress: [{}]")
	t.reaches("friend", "server", all)
	t.reaches("stranger", "server", none)
	t.ruled("Baseline", "server", "ingress: [{action: Deny, from: [{namespaces: {}}]}]")
	t.reaches("stranger", "server", all)
	t.unset()
	t.reaches("friend", "server", none)
	t.reaches("stranger", "server", none)
}

// deniedOutside has rules about what leaves the network.
func (t tenant) deniedOutside() {
	t.Helper()
	var ports []string // the other node's, of the service open
	nodePort := uint16(map[string]int{"red": 30201, "blue": 30203}[t.ns])
	for _, a := range t.c.Nodes[1].Config.Addrs {
		ports = append(ports, netip.AddrPortFrom(a.Addr(), nodePort).String())
	}
	outside := []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"}
	t.at("server", true, ports...)
	t.ruled("Admin", "server", "egress: [{action: Deny, to: [{nodes: {}}]}]")
	t.at("server", false, ports...)
	t.at("server", true, outside...)
	t.reaches("server", "friend", reached{true, true})
	t.ruled("Admin", "server", `egress: [{action: Deny, to: [{networks: [203.0.113.0/24, "2001:db8:30::/64"]}]}]`)
	t.at("server", false, outside...)
	t.at("server", true, ports...)
	t.api("server", true)
}
