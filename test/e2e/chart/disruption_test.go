package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
)

// budgets evicts a pod of the databases, of which there are three, and then another one. A budget refuses the second
// eviction, and another one that of the only master.
func (c *installed) budgets(t *testing.T) {
	t.Helper()
	c.kubectl(t, "wait", "poddisruptionbudget/ovn-db", "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=60s")
	c.kubectl(t, "wait", "poddisruptionbudget/ovnkube-master", "--for=jsonpath={.status.disruptionsAllowed}=0",
		"--timeout=60s")
	master := c.kubectl(t, "get", "pods", "--selector", "app=ovnkube-master", "--output",
		"jsonpath={.items[*].metadata.name}")
	if out, err := c.evict(t, c.databasePod(t, "n3")); err != nil {
		t.Errorf("evicting one of three pods of the databases: %v: %s", err, out)
	}
	for _, pod := range []string{c.databasePod(t, "n2"), master} {
		out, err := c.evict(t, pod)
		if err == nil || !strings.Contains(out, "would violate the pod's disruption budget") {
			t.Errorf("evicting pod %s: %v: %s; want its budget to refuse", pod, err, out)
		}
	}
}

// evict asks for the eviction of a pod of the chart.
func (c *installed) evict(t *testing.T, pod string) (string, error) {
	t.Helper()
	cmd := c.Kubectl(t.Context(), "create", "--raw",
		fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", sandbox.Namespace, pod), "--filename", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": `+
		`{"namespace": %q, "name": %q}}`, sandbox.Namespace, pod))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
