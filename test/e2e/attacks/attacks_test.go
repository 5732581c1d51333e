package attacks

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

func TestAttacks(t *testing.T) {
	b := up(t)
	b.keepTaint(t)
	machines.InstallClusterPolicies(t, b.Cluster) // the master notices it while the attacks go on
	all := slices.Concat(b.byAgents(), b.byAgentsElsewhere(), b.byKubelets(), b.byAuthors())
	machines.Eventually(t, "the admission policies hold", func(ctx context.Context) string {
		if err := annotate("n1's agent", b.agent, "n2", "example.com/probe", "x").do(ctx); refusal(err) == "" {
			return fmt.Sprintf("a request that they forbid ended with %v", err)
		}
		return ""
	})
	for _, a := range all {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := a.do(ctx)
		cancel()
		if refusal(err) == "" {
			t.Errorf("%s: %v, want a refusal", a.what, err)
			continue
		}
		t.Logf("refused: %s: %v", a.what, err)
	}
	for _, a := range b.inOrder() {
		if err := a.do(t.Context()); err != nil {
			t.Errorf("%s: %v, want success", a.what, err)
		}
	}
	b.databasesFromPods(t)
	b.databasesFromNodes(t)
	b.spoofing(t)
	b.template(t)
	b.taints(t)
	b.exercise(t)
	machines.Kubectl(t, b.Cluster, clusterPolicy, "apply", "-f", "-")
	machines.Within(t, machines.ClusterPoliciesNoticed, "the master writes a status", func(ctx context.Context) string {
		out, err := b.Kubectl(ctx, "wait", "--for=condition=Accepted", "--timeout=5s",
			"clusternetworkpolicy/nobody").CombinedOutput()
		if err != nil {
			return string(out)
		}
		return ""
	})
	b.kubelets(t)
	t.Logf("%d attacks were refused", len(all))
	rights(t, b.Cluster)
	settings(t, b.Cluster)
}

// clusterPolicy selects no pod.
const clusterPolicy = `
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: nobody}
spec: {tier: Admin, priority: 1, subject: {namespaces: {matchLabels: {team: nobody}}}}
`

// template has a Deployment's template name a place in the network: the API server refuses the pods.
func (b bed) template(t *testing.T) {
	labels := map[string]string{"app": "template"}
	p := pod("")
	p.Labels, p.Annotations = labels, map[string]string{podNetworks: "x"}
	p.Spec.TerminationGracePeriodSeconds = nil
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "template"}}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Annotations, d.Spec.Template.Spec = p.Annotations, p.Spec
	_, err := b.author.AppsV1().Deployments(tenant).Create(t.Context(), d, metav1.CreateOptions{})
	must(t, err)
	machines.Eventually(t, "the Deployment's pod is refused", func(ctx context.Context) string {
		d, err := b.admin.AppsV1().Deployments(tenant).Get(ctx, "template", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure {
				return ""
			}
		}
		return "no condition says so"
	})
}

// exercise gives the daemons reasons to use the rights that this cluster has not called for yet. A Service of policy
// Local has the agents watch EndpointSlices, and read the Node of its endpoint. A bad annotation makes an Event, and
// again when it comes back.
func (b bed) exercise(t *testing.T) {
	const annotation = "k8s.ovn.org/service-health-check"
	services := b.author.CoreV1().Services(tenant)
	_, err := b.author.CoreV1().Pods(tenant).Patch(t.Context(), "on-n2", types.MergePatchType,
		marshal(meta("labels", map[string]any{"app": "local"})), metav1.PatchOptions{})
	must(t, err)
	_, err = services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "local"},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports:                 []corev1.ServicePort{{Port: 8080}}},
	}, metav1.CreateOptions{})
	must(t, err)
	next := any("nonsense")
	machines.Eventually(t, "an Event about the annotation, twice", func(ctx context.Context) string {
		body := marshal(meta("annotations", map[string]any{annotation: next}))
		if _, err := services.Patch(ctx, "local", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err.Error()
		}
		if next == nil {
			next = "nonsense"
		} else {
			next = nil
		}
		events, err := b.admin.CoreV1().Events(tenant).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Service,involvedObject.name=local"})
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Count > 1 }) {
			return fmt.Sprintf("%d Events, none of which was seen twice", len(events.Items))
		}
		return ""
	})
}
