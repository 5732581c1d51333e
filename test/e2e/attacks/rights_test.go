package attacks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// seldom are rights that a short test gives no reason to use, and the reasons.
func seldom() map[string]string {
	return map[string]string{
		right(false, "get", "coordination.k8s.io", "leases", "kube-node-lease"): "a gateway's Lease is old",
		right(false, "update", "", "configmaps", "kube-system"):                 "the master has other flags than before",
		right(false, "update", "", "configmaps", system):                        "the chart's signer has a new authority",
		right(false, "patch", "k8s.cni.cncf.io", "ipamclaims/status", ""):       "a pod has a claim: TestPrimary uses it",
	}
}

// rights compares what the daemons asked of the API server with what roles.yaml gives them: they use every right. A
// watch that begins with what a list would have needs the right to list, too. machines.Up checks that the daemons ask
// for nothing else.
func rights(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	granted := granted(t, c)
	machines.Eventually(t, "the daemons have used every right", func(context.Context) string {
		asked, _, err := c.Control.Audited()
		if err != nil {
			return err.Error()
		}
		unused := maps.Clone(granted)
		for r := range asked {
			delete(unused, right(r.Agent, r.Verb, r.Group, r.Resource, r.Namespace))
			delete(unused, right(r.Agent, r.Verb, r.Group, r.Resource, ""))
			if r.Verb == "watch" {
				delete(unused, right(r.Agent, "list", r.Group, r.Resource, ""))
			}
		}
		maps.DeleteFunc(unused, func(r string, _ bool) bool { return seldom()[r] != "" })
		if len(unused) == 0 {
			return ""
		}
		return "never used: " + strings.Join(slices.Sorted(maps.Keys(unused)), "; ")
	})
}

// right is one verb for one resource. A namespace "" stands for all.
func right(agent bool, verb, group, resource, namespace string) string {
	who := map[bool]string{false: "ovnkube-master", true: "ovnkube-node"}[agent]
	return strings.TrimSuffix(fmt.Sprintf("%s: %s %s %s in %s", who, verb, group, resource, namespace), " in ")
}

// granted are the rights of the roles, but for the one that only admission policies ask for.
func granted(t *testing.T, c *sandbox.Cluster) map[string]bool {
	t.Helper()
	client, err := c.Control.Client()
	must(t, err)
	out := map[string]bool{}
	add := func(agent bool, namespace string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			for _, verb := range r.Verbs {
				if r.APIGroups[0] != "k8s.ovn.org" {
					out[right(agent, verb, r.APIGroups[0], r.Resources[0], namespace)] = true
				}
			}
		}
	}
	for name, agent := range map[string]bool{"ovnkube-master": false, "ovnkube-node": true} {
		role, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		add(agent, "", role.Rules)
	}
	local, err := client.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, role := range local.Items {
		if strings.HasPrefix(role.Name, "ovnkube-") {
			add(role.Name == "ovnkube-node", role.Namespace, role.Rules)
		}
	}
	return out
}
