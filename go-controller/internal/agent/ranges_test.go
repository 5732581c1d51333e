package agent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// awaitRoutes waits until these many routes lead to a range.
func awaitRoutes(t *testing.T, dest string, want int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d routes to %s", want, dest), func() string {
		out := strings.TrimSpace(testkit.Run(t, "ip", "route", "show", "exact", dest))
		if n := strings.Count(out, "dev "+mgmtLink); n != want {
			return fmt.Sprintf("%q", out)
		}
		return ""
	})
}

// A ServiceCIDR that is added to the API is routed, and its services are served
// from outside, until it goes.
func TestServiceRanges(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	ranges := b.client.NetworkingV1().ServiceCIDRs()
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"192.0.2.0/24"}}}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIPs: []string{"192.0.2.10"},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
	}
	if _, err := b.client.CoreV1().Services("default").Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRoutes(t, "192.0.2.0/24", 0)
	if _, err := ranges.Create(t.Context(), more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRoutes(t, "192.0.2.0/24", 1)
	awaitElements(t, "tcp . 30080 : 192.0.2.10 . 80")

	b.stop()
	b.start(t)
	b.awaitReady(t)
	if n := b.changes(t); n != 0 {
		t.Errorf("a restart changed %d things, want 0", n)
	}
	if err := ranges.Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRoutes(t, "192.0.2.0/24", 0)
	awaitElements(t, "")
	awaitRoutes(t, "10.96.0.0/16", 1)
}
