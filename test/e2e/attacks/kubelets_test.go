package attacks

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// reader is the namespace whose pods the page's policy lets read the kubelets' metrics.
const reader = "monitoring"

// kubelets applies the policy of docs/features/cluster-policy.md: pods of tenants reach no kubelet any more, and those
// of the reader still do.
func (b bed) kubelets(t *testing.T) {
	const page, heading = "../../../docs/features/cluster-policy.md", "## Keep pods from the kubelets"
	policies := machines.Shown(t, page, heading, "yaml")
	if len(policies) != 1 {
		t.Fatalf("%s has %d policies under %q, want one", page, len(policies), heading)
	}
	_, err := b.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: reader}}, metav1.CreateOptions{})
	must(t, err)
	p := pod("reader")
	p.Spec.NodeName = "n1"
	_, err = b.admin.CoreV1().Pods(reader).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	open := func(answer string) bool { return strings.Contains(answer, "HTTPS server") }
	b.askKubelets(t, "before", tenant, "on-n1", open)
	b.askKubelets(t, "before", reader, "reader", open)
	machines.Kubectl(t, b.Cluster, policies[0], "apply", "-f", "-")
	for _, pod := range []string{"on-n1", "on-n2"} {
		b.askKubelets(t, "with the policy", tenant, pod, machines.Dropped)
	}
	b.askKubelets(t, "with the policy", reader, "reader", open)
}

// askKubelets waits until what a pod hears from the kubelet of each node, at each address of the machine, is right.
func (b bed) askKubelets(t *testing.T, when, namespace, pod string, right func(answer string) bool) {
	t.Helper()
	for _, n := range b.Nodes {
		at := machines.ManagementAddresses(t, b.Cluster, n.Spec.Name)
		for _, p := range n.Config.Addrs {
			at = append(at, p.Addr())
		}
		for _, addr := range at {
			to := netip.AddrPortFrom(addr, 10250)
			machines.Eventually(t, fmt.Sprintf("%s, pod %s/%s asks %s", when, namespace, pod, to),
				func(ctx context.Context) string {
					if answer := machines.AskFrom(ctx, b.Cluster, namespace, pod, "tcp", to); !right(answer) {
						return "got " + answer
					}
					return ""
				})
		}
	}
}
