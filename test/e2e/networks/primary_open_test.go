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

// scraper asks a pod of a primary network by its eth0.
type scraper struct {
	name string
	ask  func(protocol string, to netip.AddrPort) string
}

// tryOpenPorts has pods and nodes of the cluster's own network connect to a pod at the ports that it opens. Nobody else
// gets a packet to it, nobody at another port, and it gets out by eth0 as little as others.
func tryOpenPorts(t *testing.T, c *sandbox.Cluster) {
	n1, n2 := c.Nodes[0], c.Nodes[1]
	apply(t, c, opening("red", "open", "n1"), "red", "open")
	defer machines.Kubectl(t, c, "", "delete", "pod", "-n", "red", "open", "--timeout=60s")
	apply(t, c, probedPod("default", "near", "n1", "")+probedPod("default", "far", "n2", ""), "default", "near", "far")
	pod := func(ns, name string) scraper {
		return scraper{"pod " + ns + "/" + name, func(protocol string, to netip.AddrPort) string {
			return askService(t.Context(), c, ns, name, protocol, to)
		}}
	}
	admitted := []scraper{pod("default", "near"), pod("default", "far"), {"node n2", func(p string,
		to netip.AddrPort) string {
		return machines.AskOn(t.Context(), n2.Member, p, to)
	}}}
	others := []scraper{pod("green", "green-1"), pod("violet", "violet-1"), {"outside", func(p string,
		to netip.AddrPort) string {
		return machines.AskOn(t.Context(), c.Outside, p, to)
	}}}
	eth0 := on(t, c, "red", "open", "eth0")
	everyWay(admitted, eth0, 8080, func(s scraper, protocol string, to netip.AddrPort) {
		machines.Eventually(t, fmt.Sprintf("%s asks red/open over %s at %s", s.name, protocol, to),
			func(context.Context) string {
				if got := s.ask(protocol, to); !strings.HasPrefix(got, "open ") {
					return got
				}
				return ""
			})
	})
	victim, near := podNamespace(t, c, n1, "red", "open"), podNamespace(t, c, n1, "default", "near")
	defer func() { _, _ = victim.Close(), near.Close() }()
	quiet := func(what string, at machines.Namespace, from []scraper, to []netip.Addr, port uint16) {
		t.Helper()
		arrived := countPackets(t, at, "eth0")
		everyWay(from, to, port, func(s scraper, protocol string, to netip.AddrPort) { _ = s.ask(protocol, to) })
		if n := arrived(); n > 0 {
			t.Errorf("%s: %d packets arrived, want none", what, n)
		}
	}
	quiet("another port", victim, admitted, eth0, 7777) // nobody else uses that port
	quiet("from elsewhere", victim, others, eth0, 7777)
	quiet("the pod itself", near, []scraper{pod("red", "open")}, machines.PodIPs(t, c, "near"), 7777)
	everyWay(others, eth0, 8080, func(s scraper, protocol string, to netip.AddrPort) {
		if got := s.ask(protocol, to); strings.HasPrefix(got, "open ") {
			t.Errorf("%s asks red/open over %s at %s, and gets %q", s.name, protocol, to, got)
		}
	})
	tryClusterPolicyOnOpenPorts(t, c, admitted[1], eth0)
}

// tryClusterPolicyOnOpenPorts has a ClusterNetworkPolicy deny a client, and accept it.
func tryClusterPolicyOnOpenPorts(t *testing.T, c *sandbox.Cluster, client scraper, eth0 []netip.Addr) {
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
		everyWay([]scraper{client}, eth0, 8080, func(s scraper, protocol string, to netip.AddrPort) {
			machines.Eventually(t, fmt.Sprintf("%s asks %s over %s under %s", s.name, to, protocol, action),
				func(context.Context) string {
					if got := s.ask(protocol, to); strings.HasPrefix(got, "open ") != (action == "Accept") {
						return got
					}
					return ""
				})
		})
	}
}

// everyWay calls do for each client, address and protocol.
func everyWay(from []scraper, to []netip.Addr, port uint16, do func(scraper, string, netip.AddrPort)) {
	for _, s := range from {
		for _, a := range to {
			for _, protocol := range []string{"tcp", "udp"} {
				do(s, protocol, netip.AddrPortFrom(a, port))
			}
		}
	}
}
