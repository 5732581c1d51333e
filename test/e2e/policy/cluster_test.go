package policy

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// clusterPolicies installs the kind ClusterNetworkPolicy, and checks with connections that are in use which rules
// decide. The first such policy moves the ACLs of all NetworkPolicies to another tier: that loses nothing.
func (b *bed) clusterPolicies(t *testing.T) {
	const namespace = "tiers"
	b.makeNamespace(t, namespace, map[string]string{"team": namespace})
	b.makePod(t, serverPod(namespace, "server", home, map[string]string{"side": "server"}))
	b.makePod(t, serverPod(namespace, "free", home, map[string]string{"side": "free"}))
	b.makePod(t, serverPod(namespace, "client", away, map[string]string{"side": "client"}))
	for _, pod := range []string{"server", "free", "client"} {
		b.awaitPod(t, namespace, pod)
	}
	client := selects("side", "client")
	b.makePolicy(t, namespace, "client-alone", networkingv1.NetworkPolicySpec{
		PodSelector: selects("side", "server"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &client}}}},
	})
	machines.FlowsInSync(t, b.Cluster)
	inside := b.inside(t, namespace, "client", away)
	talksTo := func(server string) (out []*talk) {
		for _, ip := range b.pods[namespace+"/"+server] {
			to := netip.AddrPortFrom(ip, lowPort)
			out = append(out, overUDP(t, inside, to), overTCP(t, inside, to))
		}
		return out
	}
	machines.InstallClusterPolicies(t, b.Cluster)
	allowed := talksTo("server")
	free := talksTo("free") // no NetworkPolicy selects it, so that baseline decides
	b.during(t, allowed,
		func() { b.rule(t, "unrelated", "Admin", 50, "Accept", "nobody") },
		func() { b.unrule(t, "unrelated") },
		func() { b.rule(t, "pass", "Admin", 10, "Pass", namespace) },
		func() { b.rule(t, "deny", "Admin", 20, "Deny", namespace) }, // pass comes first
		func() { b.rule(t, "baseline", "Baseline", 0, "Deny", namespace) },
	)
	cut(t, free)
	b.unrule(t, "baseline")
	b.during(t, talksTo("free"), func() {})
	b.unrule(t, "pass") // deny decides
	machines.FlowsInSync(t, b.Cluster)
	cut(t, allowed)
	b.rule(t, "accept", "Admin", 5, "Accept", namespace)
	b.during(t, talksTo("server"),
		func() { b.rule(t, "narrow", "Admin", 7, "Deny", namespace) }, // accept comes first
		func() { b.unrule(t, "deny"); b.unrule(t, "narrow") },
		func() { b.unrule(t, "accept") }, // back to no tiers
	)
}

// rule makes a ClusterNetworkPolicy for the pods of a team, with one rule of ingress about the pods of that team, and
// waits until the master has read it.
func (b *bed) rule(t *testing.T, name, tier string, priority int, action, team string) {
	t.Helper()
	of := fmt.Sprintf("{namespaces: {matchLabels: {team: %s}}}", team)
	policy := clusterPolicy(name, tier, priority, of, fmt.Sprintf("ingress: [{action: %s, from: [%s]}]", action, of))
	machines.Kubectl(t, b.Cluster, policy, "apply", "-f", "-")
	b.awaitRows(t, name, true)
}

// clusterPolicy is a ClusterNetworkPolicy as YAML, with its subject and its rules as such.
func clusterPolicy(name, tier string, priority int, subject, rules string) string {
	return fmt.Sprintf(`---
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: %s}
spec:
  tier: %s
  priority: %d
  subject: %s
  %s
`, name, tier, priority, subject, rules)
}

// unrule deletes a ClusterNetworkPolicy, and waits until its rows are gone.
func (b *bed) unrule(t *testing.T, name string) {
	t.Helper()
	machines.Kubectl(t, b.Cluster, "", "delete", "clusternetworkpolicy", name)
	b.awaitRows(t, name, false)
}

// awaitRows waits until a ClusterNetworkPolicy has rows, or has none.
func (b *bed) awaitRows(t *testing.T, name string, has bool) {
	t.Helper()
	what := fmt.Sprintf("ClusterNetworkPolicy %s has rows: %v", name, has)
	machines.Within(t, machines.ClusterPoliciesNoticed, what, func(ctx context.Context) string {
		rows, err := b.NBCtl(ctx, "--bare", "--columns=_uuid", "find", "acl",
			`external_ids:"k8s.ovn.org/owner-type"=ClusterNetworkPolicy`, `external_ids:"k8s.ovn.org/owner-name"=`+name)
		if err != nil {
			return err.Error()
		}
		if (strings.TrimSpace(rows) != "") != has {
			return fmt.Sprintf("rows %q", rows)
		}
		return ""
	})
}
