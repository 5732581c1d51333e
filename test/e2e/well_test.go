package e2e

import (
	"strings"
	"testing"

	testbed "github.com/northbound-net/northbound/test/sandbox"
)

// TestEverythingIsWell runs last, because it is in the last file. After all other tests, no packet has exceeded the
// recirculations, no switch has died, and northd still runs.
func TestEverythingIsWell(t *testing.T) {
	c, err := testbed.Open(testbed.DefaultStateRoot, name)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 3 {
		t.Errorf("there are %d nodes, want 3", len(c.Nodes))
	}
	if err := c.CheckSwitches(t.Context()); err != nil {
		t.Error(err)
	}
	// northd may fail to commit because another client wrote at the same time. It then tries again, and that is no fault.
	// A commit that can never succeed is one.
	for line := range strings.Lines(must(t, "logs", "northd")) {
		if strings.Contains(line, "remaining reference") {
			t.Errorf("northd: %s", line)
		}
	}
	nbctl(t, "--timeout=30", "--wait=sb", "sync")
	must(t, "status") // fails if a service has ended
}
