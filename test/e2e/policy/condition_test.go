package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// conditions checks what the statuses of ClusterNetworkPolicies say, and that a master that starts anew writes nothing.
func (b *bed) conditions(t *testing.T) {
	machines.InstallClusterPolicies(t, b.Cluster)
	b.rule(t, "good", "Admin", 60, "Accept", "nobody")
	first := b.awaitCondition(t, "good", "True Accepted 1")
	b.rule(t, "rival", "Admin", 60, "Accept", "nobody")
	b.awaitCondition(t, "rival", "True PriorityClash 1")
	same := b.awaitCondition(t, "good", "True PriorityClash 1")
	if same.LastTransitionTime != first.LastTransitionTime {
		t.Errorf("the time of the condition changed from %s to %s, and its status did not", first.LastTransitionTime,
			same.LastTransitionTime)
	}
	b.unrule(t, "rival")
	b.awaitCondition(t, "good", "True Accepted 1")
	machines.Kubectl(t, b.Cluster, "", "patch", "clusternetworkpolicy", "good", "--type=json", "-p",
		`[{"op":"add","path":"/spec/subject/namespaces","value":{"matchExpressions":[{"key":"a","operator":"Near"}]}}]`)
	b.awaitCondition(t, "good", "False InvalidPolicySelector 2")
	machines.Kubectl(t, b.Cluster, "", "patch", "clusternetworkpolicy", "good", "--subresource=status", "--type=merge",
		"-p", `{"status":{"conditions":[{"type":"Other","status":"True","reason":"R","message":"",`+
			`"lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
	b.awaitCondition(t, "good", "False InvalidPolicySelector 2")
	before := b.policy(t, "good")
	if len(before.Status.Conditions) != 2 {
		t.Errorf("conditions %+v, want those of others, too", before.Status.Conditions)
	}
	must(t, b.Restart(t.Context(), "master", syscall.SIGKILL))
	machines.FlowsInSync(t, b.Cluster)
	b.rule(t, "later", "Admin", 61, "Accept", "nobody")
	b.awaitCondition(t, "later", "True Accepted 1") // conditions are written again
	if after := b.policy(t, "good"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the new master changed the policy from %+v to %+v", before, after)
	}
	b.unrule(t, "later")
	machines.Kubectl(t, b.Cluster, "", "delete", "clusternetworkpolicy", "good")
}

// statusOf is what a policy has beside its spec.
type statusOf struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (b *bed) policy(t *testing.T, name string) statusOf {
	t.Helper()
	var p statusOf
	must(t, json.Unmarshal([]byte(machines.Kubectl(t, b.Cluster, "", "get", "clusternetworkpolicy", name, "-o", "json")),
		&p))
	return p
}

// awaitCondition waits until the condition Accepted has a status, a reason and a generation.
func (b *bed) awaitCondition(t *testing.T, name, want string) (found metav1.Condition) {
	t.Helper()
	machines.Within(t, machines.ClusterPoliciesNoticed, fmt.Sprintf("condition %s of ClusterNetworkPolicy %s", want, name),
		func(context.Context) string {
			var all []string
			for _, c := range b.policy(t, name).Status.Conditions {
				if found = c; c.Type == "Accepted" && fmt.Sprintf("%s %s %d", c.Status, c.Reason, c.ObservedGeneration) == want {
					return ""
				}
				all = append(all, fmt.Sprintf("%+v", c))
			}
			return "conditions " + strings.Join(all, ", ")
		})
	return found
}
