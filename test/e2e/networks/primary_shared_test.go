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

// sharedTenant is two namespaces with one primary network, which has the subnets that the other tenants have, too. The
// service is of the pods of one of them.
const sharedTenant = `
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: team}
spec:
  namespaceSelector: {matchLabels: {network/team: "yes"}}
  network:
    topology: Layer3
    layer3:
      role: Primary
      subnets: [{cidr: 10.77.0.0/16, hostSubnet: 24}, {cidr: "fd77::/48", hostSubnet: 64}]
---
apiVersion: v1
kind: Namespace
metadata: {name: amber, labels: {k8s.ovn.org/primary-user-defined-network: "", network/team: "yes"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: violet, labels: {k8s.ovn.org/primary-user-defined-network: "", network/team: "yes"}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: amber}
spec:
  selector: {app: web}
  ipFamilyPolicy: RequireDualStack
  ports:
    - {name: tcp, port: 80, targetPort: 8080, protocol: TCP}
    - {name: udp, port: 80, targetPort: 8080, protocol: UDP}
---
`

// sharedPods are the pods of the two namespaces.
func sharedPods() string {
	return probedPod("amber", "amber-1", "n1", "app: web") + probedPod("violet", "violet-1", "n1", "role: friend") +
		probedPod("violet", "violet-2", "n2", "role: stranger")
}

// fromViolet lets one pod of the other namespace in.
const fromViolet = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: friend, namespace: amber}
spec:
  podSelector: {}
  ingress:
    - from:
        - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: violet}}
          podSelector: {matchLabels: {role: friend}}
`

// tryPrimaryShared has pods of both namespaces reach each other, services, DNS and the outside.
func tryPrimaryShared(t *testing.T, c *sandbox.Cluster) {
	pods := [][2]string{{"amber", "amber-1"}, {"violet", "violet-1"}, {"violet", "violet-2"}}
	for _, from := range pods {
		for _, to := range pods {
			answers(t, c, from[0], from[1], to[1], on(t, c, to[0], to[1], "ovn-udn1"))
		}
		for _, to := range []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"} {
			sameName(t, c, from[0], from[1], "udp", to, "outside ")
		}
		sameName(t, c, from[0], from[1], "tcp", "10.96.0.10:53", "dns-")
		for _, to := range clusterIPs(t, c, "amber", "web") {
			for _, protocol := range []string{"tcp", "udp"} {
				untilService(t, c, from[0], from[1], protocol, to, "amber-1 ")
			}
		}
	}
	t.Run("policy", func(t *testing.T) { trySharedPolicy(t, c) })
	t.Run("not selected any more", func(t *testing.T) { tryLeaving(t, c) })
}

// tryNewerNetwork makes a network that is to be that of all namespaces. Their pods stay where they are, new ones too.
func tryNewerNetwork(t *testing.T, c *sandbox.Cluster) {
	const newer = `
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: everybody}
spec:
  namespaceSelector: {}
  network: {topology: Layer2, layer2: {role: Primary, subnets: ["10.79.0.0/16", "fd79::/48"]}}
`
	machines.Kubectl(t, c, newer, "apply", "-f", "-")
	const older = "amber (team), blue (blue/own), green (green/own), red (red/own), violet (team)"
	conditionEnds(t, c, "NetworkCreated", "are in the network: none; these namespaces have an older primary network, "+
		"in which their pods stay: "+older+"; delete one of the two networks", "clusteruserdefinednetwork", "everybody")
	apply(t, c, probedPod("red", "red-new", "n1", "")+probedPod("violet", "violet-new", "n1", ""), "red", "red-new")
	machines.Kubectl(t, c, "", "wait", "-n", "violet", "--for=condition=Ready", "--timeout=60s", "pod", "violet-new")
	for ns, pods := range map[string][]string{"red": {"red-1", "red-2", "red-new"}, "green": {"green-1", "green-2"},
		"blue": {"blue-1", "blue-2"}, "violet": {"violet-1", "violet-2", "violet-new"}} {
		for _, to := range pods {
			answers(t, c, ns, pods[0], to, on(t, c, ns, to, "ovn-udn1"))
		}
	}
	machines.Kubectl(t, c, "", "delete", "clusteruserdefinednetwork", "everybody", "--timeout=60s")
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "red", "red-new", "--timeout=60s")
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "violet", "violet-new", "--timeout=60s")
}

// amberAnswers waits until amber-1 answers a pod of the other namespace at all its addresses, and as the backend of its
// service, or until it does not.
func amberAnswers(t *testing.T, c *sandbox.Cluster, pod string, so bool) {
	t.Helper()
	to := clusterIPs(t, c, "amber", "web")
	for _, a := range on(t, c, "amber", "amber-1", "ovn-udn1") {
		to = append(to, netip.AddrPortFrom(a, 8080))
	}
	machines.Eventually(t, fmt.Sprintf("%s asks amber-1, want an answer: %v", pod, so), func(ctx context.Context) string {
		var checks []func() string
		for i, at := range to {
			checks = append(checks, func() string {
				got := machines.AskFrom(ctx, c, "violet", pod, []string{"tcp", "udp"}[i%2], at)
				if strings.HasPrefix(got, "amber-1 ") != so {
					return fmt.Sprintf("at %s: %s", at, got)
				}
				return ""
			})
		}
		return machines.AtOnce(checks...)
	})
}

// trySharedPolicy has a policy that selects pods of the other namespace in the network.
func trySharedPolicy(t *testing.T, c *sandbox.Cluster) {
	machines.Kubectl(t, c, fromViolet, "apply", "-f", "-")
	amberAnswers(t, c, "violet-2", false)
	amberAnswers(t, c, "violet-1", true)
	machines.Kubectl(t, c, "", "delete", "networkpolicy", "-n", "amber", "friend")
	amberAnswers(t, c, "violet-2", true)
}

// tryLeaving takes a namespace out of the network. Its pods are in none then, and have their addresses again once it is
// back. A policy that was there before holds for them again.
func tryLeaving(t *testing.T, c *sandbox.Cluster) {
	before := on(t, c, "violet", "violet-1", "ovn-udn1")
	const team = "are in the network: amber"
	network := []string{"clusteruserdefinednetwork", "team"}
	conditionEnds(t, c, "NetworkCreated", team+", violet", network...)
	machines.Kubectl(t, c, fromViolet, "apply", "-f", "-")
	machines.Kubectl(t, c, "", "label", "namespace", "violet", "network/team-")
	conditionEnds(t, c, "NetworkCreated", team, network...)
	amberAnswers(t, c, "violet-1", false)
	noAnswer(t, c, "dns-", forbidden(t, c), inPod("violet", "violet-1"))
	machines.Kubectl(t, c, "", "label", "namespace", "violet", "network/team=yes")
	amberAnswers(t, c, "violet-1", true)
	amberAnswers(t, c, "violet-2", false)
	machines.Kubectl(t, c, "", "delete", "networkpolicy", "-n", "amber", "friend")
	amberAnswers(t, c, "violet-2", true)
	if now := on(t, c, "violet", "violet-1", "ovn-udn1"); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("violet-1 had %v before its namespace left the network, and has %v", before, now)
	}
}

// tryLabel checks that a namespace gets no primary network, and loses none, once it is there.
func tryLabel(t *testing.T, c *sandbox.Cluster) {
	const label = "k8s.ovn.org/primary-user-defined-network"
	for ns, change := range map[string]string{"red": label + "-", "default": label + "="} {
		out, err := c.Kubectl(t.Context(), "label", "namespace", ns, change).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is set when a Namespace is made, and stays") {
			t.Errorf("kubectl label namespace %s %s: %v: %s", ns, change, err, out)
		}
	}
	machines.Kubectl(t, c, "", "label", "namespace", "red", label+"=other", "--overwrite") // the value says nothing
	machines.Kubectl(t, c, "", "label", "namespace", "red", label+"=", "--overwrite")
}
