package e2e

import (
	"strings"
	"testing"

	testbed "github.com/northbound-net/northbound/test/sandbox"
)

// TestEverythingIsWell runs last, as the test of the last file: no packet ran
// out of recirculations, no switch has died, and northd still runs, after all
// that the tests before have done.
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
	// A commit of northd's that fails because somebody else wrote at the same time
	// is tried again, and is no fault; one that can never succeed is.
	for line := range strings.Lines(must(t, "logs", "northd")) {
		if strings.Contains(line, "remaining reference") {
			t.Errorf("northd: %s", line)
		}
	}
	nbctl(t, "--timeout=30", "--wait=sb", "sync")
	must(t, "status") // which fails when something has ended
}
