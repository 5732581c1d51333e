package ha

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// TestRelays starts relays of the Southbound database on two nodes, with the command of the page, and gives them to the
// agent of a third node. Pods get their network through them: also when a relay is killed, and when the leader of the
// servers is. A relay lets no node write another node's rows.
func TestRelays(t *testing.T) {
	b := &bed{Cluster: machines.Up(t, sandbox.Options{Name: "relays", Nodes: 3, HA: true, DualStack: true})}
	relays, client := b.Nodes[:2], b.Nodes[2]
	var addresses []string
	for _, n := range relays {
		b.startRelay(t, n)
		addresses = append(addresses, fmt.Sprintf("ssl:%s:%d", n.Config.Addrs[0].Addr(), control.SBPort))
	}
	machines.RestartAgent(t, b.Cluster, client, "--sb-address", strings.Join(addresses, ","))
	b.pod(t, "steady-1", "n1")
	b.reaches(t, b.pod(t, "through-a-relay", "n3"))

	keys := control.NodeKeys(client.Spec.State, client.Spec.Name)
	for _, a := range addresses {
		sbctl := []string{"ovn-sbctl", "--timeout=10", "--no-leader-only", "-p", keys.Key, "-c", keys.Cert, "-C", keys.CA,
			"--db=" + a}
		if out, err := client.Run(t.Context(), append(sbctl, "--bare", "--columns=name", "list", "chassis")...); err != nil ||
			!strings.Contains(out, "n1") {
			t.Errorf("%s: the node reads %q, %v; want all chassis", a, out, err)
		}
		if _, err := client.Run(t.Context(), append(sbctl, "chassis-del", "n1")...); err == nil ||
			!strings.Contains(err.Error(), "permission error") {
			t.Errorf("%s: removing another node's chassis: %v, want a permission error", a, err)
		}
	}

	used := relayInUse(t, client, relays)
	const killed = "kill -9 $(cat /run/ovn/ovnsb_relay_db.pid)"
	if out, err := used.Run(t.Context(), "sh", "-c", killed); err != nil {
		t.Fatalf("killing the relay of %s: %v: %s", used.Spec.Name, err, out)
	}
	b.reaches(t, b.pod(t, "after-a-relay-died", "n3"))
	b.startRelay(t, used)

	leader := b.leader(t, control.SB, nil)
	must(t, leader.StopService(t.Context(), control.SB, syscall.SIGKILL))
	b.leader(t, control.SB, leader)
	b.reaches(t, b.pod(t, "after-the-leader-died", "n3"))
	b.restart(t, leader, control.SB)
}

// startRelay starts a relay on a node as the page says, with a server's certificate.
func (b *bed) startRelay(t *testing.T, n *node.Node) {
	t.Helper()
	const page, heading = "../../../docs/operate/high-availability.md", "## Relays"
	keys := b.Control.ServerKeys(control.SB)
	script := fmt.Sprintf("mkdir -p /etc/ovn\ncp %s /etc/ovn/sb-privkey.pem\ncp %s /etc/ovn/sb-cert.pem\n"+
		"cp %s /etc/ovn/sb-cacert.pem\n", keys.Key, keys.Cert, keys.CA) + machines.Blocks(t, page, heading)[0]
	for i, m := range b.Control.Config.Machines {
		script = strings.ReplaceAll(script, fmt.Sprintf("10.0.0.%d:", i+1), m.String()+":")
	}
	if out, err := n.Run(t.Context(), "bash", "-euc", script); err != nil {
		t.Fatalf("starting a relay on %s: %v: %s", n.Spec.Name, err, out)
	}
}

// relayInUse is the relay that a node's ovn-controller is connected to.
func relayInUse(t *testing.T, client *node.Node, relays []*node.Node) (used *node.Node) {
	t.Helper()
	machines.Eventually(t, "a connection to a relay", func(ctx context.Context) string {
		out, err := client.Run(ctx, "ss", "-Htn", "state", "established", "dport", "=", fmt.Sprint(":", control.SBPort))
		if err != nil {
			return err.Error()
		}
		for _, n := range relays {
			if strings.Contains(out, fmt.Sprintf("%s:%d", n.Config.Addrs[0].Addr(), control.SBPort)) {
				used = n
				return ""
			}
		}
		return "got " + out
	})
	return used
}
