package networks

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// tryRestart has the master start again. It changes nothing: addresses, rows and connections stay.
func tryRestart(t *testing.T, c *sandbox.Cluster) {
	before, exit := rowsOf(t, c), exitOf(t, c, "red.own", "n2")
	if err := c.Restart(t.Context(), "master", unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, c)
	if after := rowsOf(t, c); after != before {
		t.Errorf("rows before: %s\nand after: %s", before, after)
	}
	if now := exitOf(t, c, "red.own", "n2"); fmt.Sprint(now) != fmt.Sprint(exit) {
		t.Errorf("the exit of red had %v, and has %v", exit, now)
	}
	sameName(t, c, "red", "red-2", "tcp", "203.0.113.10:8080", "outside ")
}

// tryAgents has the nodes' agents start again. Pods of every tenant reach each other and the outside as before.
func tryAgents(t *testing.T, c *sandbox.Cluster) {
	for _, n := range c.Nodes {
		machines.RestartAgent(t, c, n)
	}
	for _, ns := range []string{"red", "green", "blue"} {
		for from, to := range map[string]string{ns + "-1": ns + "-2", ns + "-2": ns + "-1"} {
			answers(t, c, ns, from, to, on(t, c, ns, to, "ovn-udn1"))
			sameName(t, c, ns, from, "tcp", "203.0.113.10:8080", "outside ")
			sameName(t, c, ns, from, "udp", "10.96.0.10:53", "dns-1 ", "dns-2 ")
		}
	}
}
