package agent

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// awaitElements waits until the node ports of IPv4 are these, as nft shows them.
func awaitElements(t *testing.T, want string) {
	t.Helper()
	awaitElementsOf(t, "serve-ports4", want)
}

func awaitElementsOf(t *testing.T, set, want string) {
	t.Helper()
	testkit.Eventually(t, set+" "+want, func() string {
		kind := "map"
		if strings.HasPrefix(set, "inside") {
			kind = "set"
		}
		out, err := exec.Command(testkit.Tool(t, "nft"), "list", kind, "inet", "northbound", set).CombinedOutput()
		_, have, _ := strings.Cut(string(out), "elements = {")
		have, _, _ = strings.Cut(have, "}")
		if have = strings.TrimSpace(have); have != want {
			return fmt.Sprintf("%q %v", out, err)
		}
		return ""
	})
}

// A service's node port comes and goes with it, and comes back when hands have
// removed it.
func TestServicePorts(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t)
	b.becomeReady(t)
	awaitElements(t, "")
	services := b.client.CoreV1().Services("default")
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIPs: []string{"10.96.0.10"},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}},
	}
	if _, err := services.Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const element = "tcp . 30080 : 10.96.0.10 . 80"
	awaitElements(t, element)
	for _, damage := range []string{
		"delete element inet northbound serve-ports4 { tcp . 30080 }", "flush ruleset",
		"flush chain inet northbound service-in",
		"delete table inet northbound",
	} {
		testkit.Run(t, "nft", damage)
		awaitElements(t, element)
		testkit.Eventually(t, "the rules after "+damage, func() string {
			out := testkit.Run(t, "nft", "list", "table", "inet", "northbound")
			if n := strings.Count(out, "dnat ip"); n != 34 || !strings.Contains(out, "unless through "+mgmtLink) {
				return "got " + out
			}
			return ""
		})
	}
	b.awaitReady(t)
	svc.Spec.Ports[0].NodePort = 30081
	if _, err := services.Update(t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElements(t, "tcp . 30081 : 10.96.0.10 . 80")

	// A new agent finds all as it should be.
	b.stop()
	b.start(t)
	b.awaitReady(t)
	if n := b.changes(t); n != 0 {
		t.Errorf("a restart changed %d things, want 0", n)
	}
	if err := services.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitElements(t, "")
}
