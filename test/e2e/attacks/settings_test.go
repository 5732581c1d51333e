package attacks

import (
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// settings checks where an agent has the cluster's ranges from: the master publishes them. An agent needs no flags for
// them, and refuses to start with others.
func settings(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	n := c.Nodes[len(c.Nodes)-1]
	const own = "/etc/openvswitch/without-ranges.conf"
	_, err := n.Run(t.Context(), "/bin/sh", "-c",
		"sed -e '/^cluster-subnets/d' -e '/^service-cidrs/d' /etc/openvswitch/ovn_k8s.conf > "+own)
	must(t, err)
	machines.RestartAgent(t, n, "--config-file", own)
	out, err := n.Run(t.Context(), "/bin/sh", "-c", "grep -c subnets "+own)
	if err == nil {
		t.Errorf("%s still has %s lines about subnets", own, strings.TrimSpace(out))
	}
	out, err = n.Run(t.Context(), "ovnkube", "node", "--node-name", n.Spec.Name, "--config-file", own,
		"--metrics-bind-address", "127.0.0.1:0", "--cluster-subnets", "10.5.0.0/16/24")
	if err == nil {
		t.Fatalf("an agent with other ranges than the master's ran: %s", out)
	}
	if want := "--cluster-subnets 10.5.0.0/16/24: the master runs with "; !strings.Contains(err.Error(), want) {
		t.Errorf("an agent with other ranges: %v, want %q", err, want)
	}
	machines.RestartAgent(t, n, "--config-file", "/etc/openvswitch/ovn_k8s.conf")
}
