package e2e

import (
	"strings"
	"testing"
)

// TestEverythingIsWell runs last, as the test of the last file: no packet ran
// out of recirculations, no switch has died, and northd still runs, after all
// that the tests before have done.
func TestEverythingIsWell(t *testing.T) {
	for _, node := range []string{"n1", "n2", "n3"} {
		if got := must(t, "node", node, "--", "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error"); got != "0" {
			t.Errorf("node %s: datapath_drop_recirc_error is %s, want 0", node, got)
		}
		for line := range strings.Lines(must(t, "logs", node+"/ovs-vswitchd")) {
			if strings.Contains(line, "EMER") || strings.Contains(line, "died") {
				t.Errorf("node %s: %s", node, line)
			}
		}
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
