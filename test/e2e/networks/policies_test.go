package networks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

const policyCRD = "../../../dist/kubernetes/multinetworkpolicy.yaml"

// ring has a network with addresses, one without, and pods in both.
const ring = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: ring, namespace: ring}
spec:
  config: |
    {"cniVersion": "1.1.0", "name": "ring", "type": "ovn-k8s-cni-overlay", "topology": %q,
     "subnets": %q}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: bare, namespace: ring}
spec:
  config: '{"cniVersion": "1.1.0", "name": "bare", "type": "ovn-k8s-cni-overlay", "topology": "layer2"}'
---
`

// ringPod is a pod in both networks, with a number as the end of its address in the one without.
func ringPod(name, node string, number int) string {
	return labelled(name, podWith("ring", name, node, fmt.Sprintf(`[{"name": "ring"}, {"name": "bare", "ips":
		["10.67.0.%[1]d/24", "fd67::%[1]d/64"]}]`, number)))
}

// labelled is a pod with the label app.
func labelled(app, pod string) string {
	return strings.Replace(pod, "metadata: {", fmt.Sprintf("metadata: {labels: {app: %q}, ", app), 1)
}

// policy is a MultiNetworkPolicy of the pod server.
func policy(network, spec string) string {
	return fmt.Sprintf(`
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: server, namespace: ring, annotations: {k8s.v1.cni.cncf.io/policy-for: %q}}
spec: {podSelector: {matchLabels: {app: server}}, %s}
`, network, spec)
}

// reached is what a client must reach: by protocol.
type reached struct{ tcp, udp bool }

// expect waits until a pod gets answers from the server at each address by just these protocols.
func expect(t *testing.T, c *sandbox.Cluster, from string, to []netip.Addr, want reached) {
	t.Helper()
	machines.Eventually(t, from+" asks", func(ctx context.Context) string {
		var checks []func() string
		for _, a := range to {
			for protocol, answered := range map[string]bool{"tcp": want.tcp, "udp": want.udp} {
				checks = append(checks, func() string {
					if got := ask(ctx, c, "ring", from, protocol, a); (got == "server") != answered {
						return fmt.Sprintf("%s by %s: %q, want an answer: %v", a, protocol, got, answered)
					}
					return ""
				})
			}
		}
		return machines.AtOnce(checks...)
	})
}

// TestFurther checks policies of further interfaces, macvlans and Multus, on a cluster of their own.
func TestFurther(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "further-test", Nodes: 2, DualStack: true})
	machines.Kubectl(t, c, "", "apply", "-f", crd)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"network-attachment-definitions.k8s.cni.cncf.io")
	t.Run("macvlan", func(t *testing.T) { tryMacvlan(t, c) })
	t.Run("Multus", func(t *testing.T) { tryMultus(t, c) })
	t.Run("policies", func(t *testing.T) { tryPolicies(t, c) })
}

// tryPolicies has MultiNetworkPolicies of a network of one switch, and then of one with a switch for each node.
func tryPolicies(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, "", "apply", "-f", policyCRD)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"multi-networkpolicies.k8s.cni.cncf.io")
	for topology, subnets := range map[string]string{"layer2": "10.66.0.0/24,fd66::/64",
		"layer3": "10.66.0.0/16/24,fd66::/48/64"} {
		t.Run(topology, func(t *testing.T) {
			machines.Kubectl(t, c, "", "create", "namespace", "ring")
			defer machines.Kubectl(t, c, "", "delete", "namespace", "ring", "--timeout=90s")
			apply(t, c, fmt.Sprintf(ring, topology, subnets)+ringPod("server", "n1", 1)+ringPod("friend", "n2", 2)+
				ringPod("stranger", "n2", 3)+ringPod("neighbour", "n1", 4), "ring", "server", "friend", "stranger", "neighbour")
			tryRing(t, c, topology)
		})
	}
}

func tryRing(t *testing.T, c *sandbox.Cluster, topology string) {
	all, none := reached{true, true}, reached{}
	clients := []string{"friend", "stranger", "neighbour"}
	set := func(network, spec string) { machines.Kubectl(t, c, policy(network, spec), "apply", "-f", "-") }
	to := on(t, c, "ring", "server", "net1")
	own := strings.Fields(machines.Kubectl(t, c, "", "get", "pod", "-n", "ring", "server", "-o",
		"jsonpath={.status.podIPs[*].ip}"))
	bare := []netip.Addr{netip.MustParseAddr("10.67.0.1"), netip.MustParseAddr("fd67::1")}
	untouched := func() {
		t.Helper()
		for _, from := range clients {
			for _, a := range own {
				expect(t, c, from, []netip.Addr{netip.MustParseAddr(a)}, all)
			}
		}
	}
	for _, from := range clients {
		expect(t, c, from, to, all)
		expect(t, c, from, bare, all)
	}
	set("ring", "policyTypes: [Ingress]")
	for _, from := range clients {
		expect(t, c, from, to, none)
		expect(t, c, from, bare, all)
	}
	untouched()
	// The policy has no rule, and no other policy has one. What the server begins is answered nevertheless.
	answers(t, c, "ring", "server", "friend", on(t, c, "ring", "friend", "net1"))
	born(t, c, topology)
	set("ring", "ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]")
	expect(t, c, "friend", to, all)
	expect(t, c, "stranger", to, none)
	expect(t, c, "neighbour", to, none)
	from := on(t, c, "ring", "stranger", "net1")
	set("ring", fmt.Sprintf("ingress: [{from: [{ipBlock: {cidr: %s/32}}, {ipBlock: {cidr: '%s/128'}}]}]", from[0],
		from[1]))
	expect(t, c, "stranger", to, all)
	expect(t, c, "friend", to, none)
	set("ring", "ingress: [{ports: [{protocol: UDP, port: 8080}, {port: 8079}]}]")
	for _, from := range clients {
		expect(t, c, from, to, reached{udp: true})
	}
	set("ring", "ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}], ports: [{port: 8070, endPort: 8090}]}]")
	expect(t, c, "friend", to, reached{tcp: true})
	expect(t, c, "stranger", to, none)
	set("ring", fmt.Sprintf("ingress: [{from: [{ipBlock: {cidr: 10.66.0.0/16, except: [%s/32]}}, {ipBlock: {cidr: "+
		"'fd66::/48', except: ['%s/128']}}]}]", from[0], from[1]))
	expect(t, c, "friend", to, all)
	expect(t, c, "stranger", to, none)
	// A network without subnets: peers by selector allow nothing, and an Event says so.
	set("ring/bare", "ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.67.0.3/32}}]}]")
	expect(t, c, "stranger", bare[:1], all)
	expect(t, c, "friend", bare, none)
	expect(t, c, "friend", to, all)
	machines.Eventually(t, "the Event of the policy", func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "events", "-n", "ring", "--field-selector", "reason=PolicyNeedsAddresses").Output()
		if err != nil || !strings.Contains(string(out), "spec.ingress[0]") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
	// Egress: the policy of the client says what it reaches.
	egress := policy("ring", "egress: [{to: [{podSelector: {matchLabels: {app: friend}}}]}]")
	machines.Kubectl(t, c, strings.ReplaceAll(egress, "app: server", "app: stranger"), "apply", "-f", "-")
	expect(t, c, "stranger", to, none)
	expect(t, c, "friend", to, all)
	untouched()
	machines.InSync(t, c)
	machines.Kubectl(t, c, "", "delete", "multi-policy", "-n", "ring", "--all")
	for _, from := range clients {
		expect(t, c, from, to, all)
		expect(t, c, from, bare, all)
	}
	out, err := c.NBCtl(t.Context(), "--columns=name", "find", "Port_Group",
		`external_ids:"k8s.ovn.org/owner-type"=NetworkIsolation`)
	if err != nil || out != "" {
		t.Errorf("without policies there are port groups left: %s, %v", out, err)
	}
}

// born makes a pod that a policy isolates, while others send to the address that it will have: nobody is answered.
func born(t *testing.T, c *sandbox.Cluster, topology string) {
	if topology == "layer3" {
		return // the node's subnet is not known in advance
	}
	var asking []*late
	for _, to := range []string{"10.66.0.77:8080", "[fd66::77]:8080"} {
		for _, from := range []string{"friend", "neighbour"} {
			asking = append(asking, askLate(t, c, "ring", from, netip.MustParseAddrPort(to)))
		}
	}
	apply(t, c, labelled("server", podWith("ring", "late", "n1", `[{"name": "ring", "ips": ["10.66.0.77", "fd66::77"]}]`)),
		"ring", "late")
	for _, l := range asking {
		l.unanswered(t)
	}
	machines.Kubectl(t, c, "", "delete", "multi-policy", "-n", "ring", "--all")
	machines.Eventually(t, "the late pod answers without the policy", func(ctx context.Context) string {
		if got := ask(ctx, c, "ring", "friend", "udp", netip.MustParseAddr("fd66::77")); got != "late" {
			return fmt.Sprintf("%q", got)
		}
		return ""
	})
}

// trySharedPolicies has a policy of a namespace about a network of several. Its peers are pods of the network in any
// namespace.
func trySharedPolicies(t *testing.T, c *sandbox.Cluster) {
	const shared = `
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: closed, namespace: purple, annotations: {k8s.v1.cni.cncf.io/policy-for: shared}}
spec: {podSelector: {}, %s}
`
	one, two := on(t, c, "purple", "one", "net1"), on(t, c, "orange", "two", "backend")
	for _, step := range []struct {
		spec     string
		answered bool
	}{
		{"policyTypes: [Ingress]", false},
		{"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: orange}}}]}]", true},
		{"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: purple}}}]}]", false},
	} {
		machines.Kubectl(t, c, fmt.Sprintf(shared, step.spec), "apply", "-f", "-")
		for i, a := range one {
			machines.Eventually(t, fmt.Sprintf("two asks %s with %s", a, step.spec), func(ctx context.Context) string {
				if got := ask(ctx, c, "orange", "two", []string{"tcp", "udp"}[i], a); (got == "one") != step.answered {
					return fmt.Sprintf("%q, want an answer: %v", got, step.answered)
				}
				return ""
			})
		}
		answers(t, c, "purple", "one", "two", two)
	}
	// Without the label the name is no network's, and the policy has no effect: an Event says so.
	machines.Kubectl(t, c, "", "label", "namespace", "purple", "network/shared-")
	machines.Eventually(t, "an Event of the policy", func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "events", "-n", "purple", "--field-selector",
			"reason=PolicyNetworkMissing,involvedObject.name=closed").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "no such ClusterUserDefinedNetwork that selects the namespace") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
	machines.Kubectl(t, c, "", "label", "namespace", "purple", "network/shared=yes")
	machines.Kubectl(t, c, "", "delete", "multi-networkpolicy", "-n", "purple", "closed")
	answers(t, c, "orange", "two", "one", one)
}
