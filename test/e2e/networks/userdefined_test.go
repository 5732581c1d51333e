package networks

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// The files that the documentation tells users to apply.
const (
	userKinds   = "../../../dist/kubernetes/userdefinednetworks.yaml"
	userExample = "../../../docs/features/userdefinednetworks.yaml"
)

// wrongNetworks are UserDefinedNetworks that are not served: the ranges of one are the cluster's own, the other has a
// field that nobody knows.
const wrongNetworks = `
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: {name: inside, namespace: purple}
spec:
  topology: Layer2
  layer2: {role: Secondary, subnets: [%q]}
---
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: {name: newer, namespace: purple}
spec:
  topology: Layer2
  layer2: {role: Secondary, subnets: [10.65.0.0/24], colour: blue}
`

// created waits until UserDefinedNetworks of a namespace have their networks.
func created(t *testing.T, c *sandbox.Cluster, namespace string, names ...string) {
	t.Helper()
	for _, condition := range []string{"NetworkCreated", "NetworkAllocationSucceeded"} {
		machines.Kubectl(t, c, "", append([]string{"wait", "-n", namespace, "--for=condition=" + condition,
			"--timeout=120s", "userdefinednetwork"}, names...)...)
	}
}

// TestUserDefined checks networks that users define. The API server has no NetworkAttachmentDefinitions.
func TestUserDefined(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "userdefined-test", Nodes: 2, DualStack: true,
		MasterArgs: []string{"--physical-networks", "lan:100-199"}})
	install(t, c, userKinds, "userdefinednetworks.k8s.ovn.org", "clusteruserdefinednetworks.k8s.ovn.org")
	machines.Kubectl(t, c, "", "apply", "-f", policyCRD)
	t.Run("example", func(t *testing.T) { tryUserDefined(t, c) })
	t.Run("refused", func(t *testing.T) { tryRefused(t, c) })
	t.Run("shared", func(t *testing.T) { tryShared(t, c) })
	t.Run("policies of the shared network", func(t *testing.T) { trySharedPolicies(t, c) })
	t.Run("VLAN", func(t *testing.T) { tryVLANOfAll(t, c) })
	t.Run("deleted while in use", func(t *testing.T) { tryProtected(t, c) })
	machines.InSync(t, c)
	t.Run("nothing is left", func(t *testing.T) {
		for _, ns := range []string{"purple", "orange"} {
			machines.Kubectl(t, c, "", "delete", "pod", "-n", ns, "--all", "--timeout=60s")
			machines.Kubectl(t, c, "", "delete", "userdefinednetwork", "-n", ns, "--all", "--timeout=60s")
		}
		machines.Kubectl(t, c, "", "delete", "clusteruserdefinednetwork", "--all", "--timeout=60s")
		nothingLeft(t, c, `(purple|orange)\.|\.(shared|san)_`)
	})
}

// tryUserDefined has UserDefinedNetworks of two namespaces, with the same ranges.
func tryUserDefined(t *testing.T, c *sandbox.Cluster) {
	example, err := os.ReadFile(userExample)
	if err != nil {
		t.Fatal(err)
	}
	machines.Kubectl(t, c, string(example), "apply", "-f", "-")
	created(t, c, "purple", "own", "routed")
	created(t, c, "orange", "own")
	for _, ns := range []string{"purple", "orange"} {
		var pods string
		for i, node := range []string{"n1", "n2", "n2"} {
			pods += podWith(ns, fmt.Sprintf("%s-%d", ns, i+1), node,
				fmt.Sprintf(`[{"name": "own", "ips": ["10.66.0.1%[1]d", "fd66::1%[1]d"]}]`, i+1))
		}
		apply(t, c, pods, ns, ns+"-1", ns+"-2", ns+"-3")
	}
	for _, ns := range []string{"purple", "orange"} {
		for i := range 3 {
			for k := range 3 {
				to := fmt.Sprintf("%s-%d", ns, k+1)
				answers(t, c, ns, fmt.Sprintf("%s-%d", ns, i+1), to, on(t, c, ns, to, "net1"))
			}
		}
	}
	apply(t, c, podWith("purple", "left", "n1", "routed")+podWith("purple", "right", "n2", "routed@backend"), "purple",
		"left", "right")
	answers(t, c, "purple", "left", "right", on(t, c, "purple", "right", "backend"))
	answers(t, c, "purple", "right", "left", on(t, c, "purple", "left", "net1"))
	strangers(t, c)
}

// tryShared has pods of two namespaces in a network of the cluster. A namespace that is not selected yet gets it once
// it has the label.
func tryShared(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, "", "wait", "--for=condition=NetworkCreated", "--timeout=60s",
		"clusteruserdefinednetwork/shared")
	machines.Kubectl(t, c, "", "label", "namespace", "purple", "network/shared=yes")
	apply(t, c, podWith("purple", "one", "n1", "shared"), "purple", "one")
	machines.Kubectl(t, c, podWith("orange", "two", "n2", "shared@backend"), "apply", "-f", "-")
	waitsIn(t, c, "orange", "two", "there is no NetworkAttachmentDefinition orange/shared")
	machines.Kubectl(t, c, "", "label", "namespace", "orange", "network/shared=yes")
	machines.Kubectl(t, c, "", "wait", "-n", "orange", "--for=condition=Ready", "--timeout=120s", "pod", "two")
	one, two := on(t, c, "purple", "one", "net1"), on(t, c, "orange", "two", "backend")
	answers(t, c, "purple", "one", "two", two)
	answers(t, c, "orange", "two", "one", one)
	for _, a := range one {
		if got := ask(t.Context(), c, "purple", "left", "tcp", a); strings.HasPrefix(got, "one") {
			t.Errorf("a pod that is not in the network asks %s: %s answers", a, got)
		}
	}
	// Without the label, the namespace's pods are disconnected.
	machines.Kubectl(t, c, "", "label", "namespace", "orange", "network/shared-")
	machines.Eventually(t, "a pod of a namespace that is not selected any more", func(ctx context.Context) string {
		for _, a := range one {
			if got := ask(ctx, c, "orange", "two", "udp", a); strings.HasPrefix(got, "one") {
				return fmt.Sprintf("it asks %s, and %s answers", a, got)
			}
		}
		return ""
	})
	machines.Kubectl(t, c, "", "label", "namespace", "orange", "network/shared=yes")
	answers(t, c, "orange", "two", "one", one)
	answers(t, c, "purple", "one", "two", two)
}

// vlanForAll is a network of a VLAN outside for all namespaces, and one of a network that the operator has not allowed.
const vlanForAll = `
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: san}
spec:
  namespaceSelector: {}
  network:
    topology: Localnet
    localnet:
      role: Secondary
      physicalNetworkName: lan
      subnets: [192.0.2.0/24, "2001:db8:100::/64"]
      excludeSubnets: [192.0.2.0/26]
      vlan: {mode: Access, access: {id: 100}}
---
`

// tryVLANOfAll joins pods of two namespaces to the VLAN by a ClusterUserDefinedNetwork. They reach each other, and a
// host in the VLAN one of them, while the network selects their namespaces.
func tryVLANOfAll(t *testing.T, c *sandbox.Cluster) {
	cable(t, c)
	n1, n2 := c.Nodes[0], c.Nodes[1]
	machines.Kubectl(t, c, vlanForAll, "apply", "-f", "-")
	for _, lacking := range []string{"n1, n2", "n2"} {
		conditionEnds(t, c, "PhysicalNetworkMapped", "no bridge for physical network lan: "+lacking+
			"; see --bridge-mappings of the node agent", "clusteruserdefinednetwork", "san")
		n := map[string]*node.Node{"n1, n2": n1, "n2": n2}[lacking]
		machines.RestartAgent(t, c, n, "--bridge-mappings", "physnet:br-phys,lan:br-lan")
	}
	defer hostIn(t, n2, "100", [2]string{"192.0.2.3/24", "2001:db8:100::f3/64"})()
	for _, condition := range []string{"NetworkCreated", "PhysicalNetworkMapped"} {
		machines.Kubectl(t, c, "", "wait", "--for=condition="+condition, "--timeout=60s", "clusteruserdefinednetwork/san")
	}
	asked := `[{"name": "san", "ips": ["192.0.2.77", "2001:db8:100::77"]}]`
	apply(t, c, podWith("orange", "disk", "n1", asked), "orange", "disk")
	apply(t, c, podWith("purple", "disk-2", "n2", "san"), "purple", "disk-2")
	one, two := on(t, c, "orange", "disk", "net1"), on(t, c, "purple", "disk-2", "net1")
	for _, a := range one {
		hostAsks(t, c, n2, netip.AddrPortFrom(a, 8080), "disk")
	}
	both := func() {
		t.Helper()
		answers(t, c, "purple", "disk-2", "disk", one)
		answers(t, c, "orange", "disk", "disk-2", two)
	}
	both()
	selects := func(namespaces string) {
		t.Helper()
		machines.Kubectl(t, c, "", "patch", "clusteruserdefinednetwork", "san", "--type=merge", "-p", fmt.Sprintf(
			`{"spec":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In",`+
				`"values":[%s]}]}}}`, namespaces))
	}
	selects(`"orange"`)
	machines.Eventually(t, "a namespace that is not selected", func(ctx context.Context) string {
		for _, a := range one {
			if got := ask(ctx, c, "purple", "disk-2", "udp", a); strings.HasPrefix(got, "disk") {
				return fmt.Sprintf("its pod asks %s, and %s answers", a, got)
			}
		}
		return ""
	})
	selects(`"orange", "purple"`)
	both()
	machines.Kubectl(t, c, "", "delete", "clusteruserdefinednetwork", "san", "--wait=false")
	conditionEnds(t, c, "NetworkCreated", "it stays while pods have interfaces in it: orange/disk, purple/disk-2",
		"clusteruserdefinednetwork", "san")
	both()
}

// strangers checks that a pod which has only the network routed, and the nodes, reach no pod of another network.
func strangers(t *testing.T, c *sandbox.Cluster) {
	for _, a := range on(t, c, "orange", "orange-2", "net1") {
		for _, protocol := range []string{"tcp", "udp"} {
			got := []string{ask(t.Context(), c, "purple", "left", protocol, a)}
			for _, n := range c.Nodes {
				got = append(got, machines.AskOn(t.Context(), n.Member, protocol, netip.AddrPortFrom(a, 8080)))
			}
			for _, answer := range got {
				if strings.HasPrefix(answer, "orange") || strings.HasPrefix(answer, "purple") {
					t.Errorf("%s answers a stranger that asks %s by %s", answer, a, protocol)
				}
			}
		}
	}
}

// tryRefused has networks that are not served, requests of another namespace, and a change of a network.
func tryRefused(t *testing.T, c *sandbox.Cluster) {
	manifest := fmt.Sprintf(wrongNetworks, machines.Subnets(t, c, "n1")[0])
	machines.Kubectl(t, c, manifest, "apply", "--validate=false", "-f", "-")
	for name, want := range map[string]string{
		"inside": "which the cluster itself uses", "newer": `unknown field "layer2.colour"`,
	} {
		machines.Eventually(t, "the condition of "+name, func(ctx context.Context) string {
			out, err := c.Kubectl(ctx, "get", "userdefinednetwork", "-n", "purple", name, "-o",
				`jsonpath={.status.conditions[?(@.type=="NetworkCreated")]}`).Output()
			if err != nil || !strings.Contains(string(out), `"status":"False"`) ||
				!strings.Contains(strings.ReplaceAll(string(out), `\"`, `"`), want) {
				return fmt.Sprintf("%s, %v: want False, with %q", out, err, want)
			}
			return ""
		})
	}
	out, err := c.Kubectl(t.Context(), "patch", "userdefinednetwork", "-n", "purple", "own", "--type=merge", "-p",
		`{"spec":{"layer2":{"mtu":1300}}}`).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Spec is immutable") {
		t.Errorf("changing a network: %s, %v; want an error", out, err)
	}
	const empty = `
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: empty}
spec:
  namespaceSelector: {}
  network:
    topology: Localnet
    localnet: {role: Secondary, physicalNetworkName: lan, subnets: [10.9.0.0/24], excludeSubnets: []}
`
	cmd := c.Kubectl(t.Context(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(empty)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "localnet.excludeSubnets") {
		t.Errorf("applying a network with an empty list of excludeSubnets: %s, %v; want an error about that", out, err)
	}
	machines.Kubectl(t, c, podWith("purple", "thief", "n1", "orange/own"), "apply", "-f", "-")
	waitsIn(t, c, "purple", "thief", "want one in the pod's own namespace")
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "purple", "thief", "--timeout=60s")
	machines.Kubectl(t, c, "", "delete", "userdefinednetwork", "-n", "purple", "inside", "newer")
}

// tryProtected deletes a network that pods use: it stays until the last of them is gone.
func tryProtected(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, "", "delete", "userdefinednetwork", "-n", "orange", "own", "--wait=false")
	deleted := func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, "get", "userdefinednetwork", "-n", "orange", "own", "-o",
			"jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers}").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "user-defined-network-protection") || strings.HasPrefix(
			string(out), " ") {
			return fmt.Sprintf("%s, %v: want a time, and the finalizer", out, err)
		}
		return ""
	}
	machines.Eventually(t, "the network that is deleted", deleted)
	const kept = "it stays while pods have interfaces in it: orange/orange-1, orange/orange-2"
	network := []string{"userdefinednetwork", "-n", "orange", "own"}
	conditionEnds(t, c, "NetworkCreated", kept+", orange/orange-3", network...)
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "orange", "orange-3", "--timeout=60s")
	conditionEnds(t, c, "NetworkCreated", kept, network...)
	machines.InSync(t, c)
	if wrong := deleted(t.Context()); wrong != "" {
		t.Error(wrong)
	}
	answers(t, c, "orange", "orange-1", "orange-2", on(t, c, "orange", "orange-2", "net1"))
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "orange", "orange-1", "orange-2", "--timeout=60s")
	machines.Kubectl(t, c, "", "wait", "-n", "orange", "--for=delete", "--timeout=60s", "userdefinednetwork/own")
}

// conditionEnds waits until the message of the condition of a network ends with a text.
func conditionEnds(t *testing.T, c *sandbox.Cluster, condition, want string, network ...string) {
	t.Helper()
	what := fmt.Sprintf("the condition %s of %s ends with %q", condition, network, want)
	machines.Eventually(t, what, func(ctx context.Context) string {
		out, err := c.Kubectl(ctx, append([]string{"get", "-o",
			fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)].message}`, condition)}, network...)...).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}
