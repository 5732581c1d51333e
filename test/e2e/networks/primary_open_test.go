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

// opening is a probed pod that opens the port of its server.
func opening(namespace, name, node string) string {
	return strings.Replace(probedPod(namespace, name, node, "opens: yes-it-does"), "labels:", `annotations: `+
		`{k8s.ovn.org/open-default-ports: "[{protocol: tcp, port: 8080}, {protocol: udp, port: 8080}]"}, labels:`, 1)
}

// tryOpenPorts has pods and nodes of the cluster's own network connect to a pod at the ports that it opens. Nobody else
// gets a packet to it, nobody at another port, and it gets out by eth0 as little as others.
func tryOpenPorts(t *testing.T, c *sandbox.Cluster) {
	n1, n2 := c.Nodes[0], c.Nodes[1]
	apply(t, c, opening("red", "open", "n1"), "red", "open")
	defer machines.Kubectl(t, c, "", "delete", "pod", "-n", "red", "open", "--timeout=60s")
	apply(t, c, probedPod("default", "near", "n1", "")+probedPod("default", "far", "n2", ""), "default", "near", "far")
	admitted := []client{inPod("default", "near"), inPod("default", "far"), onMachine("node n2", n2.Member)}
	others := []client{inPod("green", "green-1"), inPod("violet", "violet-1"), onMachine("outside", c.Outside)}
	eth0 := on(t, c, "red", "open", "eth0")
	machines.Eventually(t, "who may asks red/open", func(ctx context.Context) string {
		return everyWay(ctx, c, admitted, at(eth0, 8080), isFrom("open ", true))
	})
	victim, near := machines.PodNamespace(t, n1, "red", "open"), machines.PodNamespace(t, n1, "default", "near")
	defer func() { _, _ = victim.Close(), near.Close() }()
	quiet := func(what string, pod machines.Namespace, from []client, to []netip.Addr, port uint16) {
		t.Helper()
		arrived := countPackets(t, pod, "eth0")
		_ = everyWay(t.Context(), c, from, at(to, port), isFrom("", true))
		if n := arrived(); n > 0 {
			t.Errorf("%s: %d packets arrived, want none", what, n)
		}
	}
	quiet("another port", victim, admitted, eth0, 7777) // nobody else uses that port
	quiet("from elsewhere", victim, others, eth0, 7777)
	quiet("the pod itself", near, []client{inPod("red", "open")}, machines.PodIPs(t, c, "near"), 7777)
	noAnswer(t, c, "open ", at(eth0, 8080), others...)
	tryClusterPolicyOnOpenPorts(t, c, admitted[1], eth0)
}

// tryClusterPolicyOnOpenPorts has a ClusterNetworkPolicy deny a client, and accept it.
func tryClusterPolicyOnOpenPorts(t *testing.T, c *sandbox.Cluster, from client, eth0 []netip.Addr) {
	const policy = `
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: about-open-ports}
spec:
  tier: Admin
  priority: 9
  subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {opens: yes-it-does}}}}
  ingress: [{action: %s, from: [{namespaces: {matchLabels: {kubernetes.io/metadata.name: default}}}]}]
`
	defer machines.Kubectl(t, c, "", "delete", "clusternetworkpolicy", "--ignore-not-found", "about-open-ports")
	for _, action := range []string{"Deny", "Accept"} {
		machines.Kubectl(t, c, fmt.Sprintf(policy, action), "apply", "-f", "-")
		machines.Eventually(t, from.name+" asks under "+action, func(ctx context.Context) string {
			return everyWay(ctx, c, []client{from}, at(eth0, 8080), isFrom("open ", action == "Accept"))
		})
	}
}
