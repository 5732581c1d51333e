package policy

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// editPace is the time between two changes.
const editPace = 100 * time.Millisecond

// edit changes labels and policies until done is closed. None of that allows anything.
func (n *nursery) edit(t *testing.T, in, out string, done <-chan struct{}) {
	tick := time.NewTicker(editPace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		namespace, direction := in, networkingv1.PolicyTypeIngress
		if i%2 == 1 {
			namespace, direction = out, networkingv1.PolicyTypeEgress
		}
		if err := n.change(t, namespace, direction, i/2); err != nil {
			t.Errorf("change %d in namespace %s: %v", i, namespace, err)
			return
		}
		n.edits.Add(1)
	}
}

// change is the i-th change in a namespace, in turn: of the namespace's label, of its pods' label, of the policy, and
// of another policy, which selects by that label.
func (n *nursery) change(t *testing.T, namespace string, direction networkingv1.PolicyType, i int) error {
	ctx, core := t.Context(), n.client.CoreV1()
	policies := n.client.NetworkingV1().NetworkPolicies(namespace)
	phase := fmt.Sprint(i / 5 % 8) // the same in one turn
	labelled := fmt.Appendf(nil, `{"metadata": {"labels": {"phase": %q}}}`, phase)
	switch i % 5 {
	case 0:
		_, err := core.Namespaces().Patch(ctx, namespace, types.MergePatchType, labelled, metav1.PatchOptions{})
		return err
	case 1:
		pods, err := core.Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			_, err := core.Pods(namespace).Patch(ctx, p.Name, types.MergePatchType, labelled, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) { // some go meanwhile
				return err
			}
		}
		return nil
	case 2:
		patch, err := json.Marshal(map[string]any{"spec": nobodyIn(direction, phase)})
		if err != nil {
			return err
		}
		_, err = policies.Patch(ctx, "deny", types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	case 3:
		spec := nobodyIn(direction, phase)
		spec.PodSelector = selects("phase", phase)
		_, err := policies.Create(ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "second"},
			Spec: spec}, metav1.CreateOptions{})
		return err
	}
	return policies.Delete(ctx, "second", metav1.DeleteOptions{})
}

// nobodyIn allows pods that there are none of, in namespaces with a label.
func nobodyIn(direction networkingv1.PolicyType, phase string) networkingv1.NetworkPolicySpec {
	nobody, namespaces := selects("nobody", phase), selects("phase", phase)
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &nobody, NamespaceSelector: &namespaces}}
	spec := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{direction}}
	if direction == networkingv1.PolicyTypeIngress {
		spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
	} else {
		spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: peers}}
	}
	return spec
}
