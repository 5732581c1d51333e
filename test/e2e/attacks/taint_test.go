package attacks

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// Keys of taints: of the one that waits for a node's agent, and of one that an administrator has put.
const (
	waiting = "northbound.io/agent-not-ready"
	kept    = "example.com/kept"
)

func taintOf(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

// keepTaint puts a taint on n1 that attackers then try to remove. It keeps no pod away.
func (b bed) keepTaint(t *testing.T) {
	t.Helper()
	_, err := b.admin.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType,
		marshal(spec("taints", []corev1.Taint{taintOf(kept, corev1.TaintEffectPreferNoSchedule)})), metav1.PatchOptions{})
	must(t, err)
}

// taints has n1 wait for its agent, as a kubelet registers it. The master removes that taint once the agent says that
// it is ready, and no other, not even one with a key that begins like it. It also clears the condition that a cloud's
// controller might leave.
func (b bed) taints(t *testing.T) {
	t.Helper()
	nodes := b.admin.CoreV1().Nodes()
	others := []corev1.Taint{taintOf(kept, corev1.TaintEffectPreferNoSchedule),
		taintOf(waiting+"-at-all", corev1.TaintEffectPreferNoSchedule)}
	all := []corev1.Taint{taintOf(waiting, corev1.TaintEffectPreferNoSchedule), others[0],
		taintOf(waiting, corev1.TaintEffectNoSchedule), others[1]}
	cloud := map[string]any{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}
	_, err := nodes.Patch(t.Context(), "n1", types.StrategicMergePatchType, marshal(map[string]any{
		"status": map[string]any{"conditions": []any{cloud}}}), metav1.PatchOptions{}, "status")
	must(t, err)
	_, err = nodes.Patch(t.Context(), "n1", types.MergePatchType, marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"k8s.ovn.org/node-agent-ready": nil}},
		"spec":     map[string]any{"taints": all}}), metav1.PatchOptions{})
	must(t, err)
	machines.Eventually(t, "the taint that waits for the agent is gone, and no other", func(ctx context.Context) string {
		n, err := nodes.Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, want := range others {
			if !has(n.Spec.Taints, want.Key) {
				t.Fatalf("taint %s is gone, too: %v", want.Key, n.Spec.Taints)
			}
		}
		if has(n.Spec.Taints, waiting) {
			return fmt.Sprintf("the taints are %v", n.Spec.Taints)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionFalse {
				return ""
			}
		}
		return "condition NetworkUnavailable is not False"
	})
}

func has(taints []corev1.Taint, key string) bool {
	for _, t := range taints {
		if t.Key == key {
			return true
		}
	}
	return false
}
