package nicmove_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func forward() call {
	return call{NICs: []string{"eth0"}, Target: "192.0.2.1", Options: nicmove.Options{Datapath: "netdev",
		Timeout: 10 * time.Second}}
}

func back() call { return call{Bridges: []string{"breth0"}} }

// After the move, breth0 has the whole configuration of eth0. After the return, eth0 has exactly its old configuration.
// The node is reachable at all addresses, pings are answered once, and a second run changes nothing.
func TestMove(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before, had := dump(t, "eth0"), belongings(t, "eth0")
	reachable(t)
	dry := forward()
	dry.Options.DryRun = true
	plan := mustRun(t, dry)
	same(t, "eth0 after --dry-run", dump(t, "eth0"), before)

	out := mustRun(t, forward())
	if n := strings.Count(plan, "\n"); n < 40 || !strings.HasPrefix(steady(out), steady(plan)) {
		t.Errorf("%d steps planned:\n%s\nmade:\n%s", n, plan, out)
	}
	same(t, "what breth0 has", belongings(t, "breth0"), had)
	reachable(t)
	for range 2 {
		if out := mustRun(t, forward()); out != "eth0: nothing to do: bridge breth0 is set up already\n" {
			t.Errorf("running again prints:\n%s", out)
		}
	}
	const want = "standalone\nnetdev\n{hwaddr=\"0a:58:00:00:00:01\"}\n{bridge-id=breth0, bridge-uplink=eth0}\n"
	got := testkit.Run(t, "ovs-vsctl", "get", "bridge", "breth0", "fail_mode", "datapath_type", "other_config",
		"external_ids")
	if got != want {
		t.Errorf("bridge: %s", got)
	}
	dry = back()
	dry.Options.DryRun = true
	plan = mustRun(t, dry)
	if out = mustRun(t, back()); !strings.HasPrefix(steady(out), steady(plan)) {
		t.Errorf("planned:\n%s\nmade:\n%s", plan, out)
	}
	same(t, "eth0 after the return", dump(t, "eth0"), before)
	clean(t)
	reachable(t)
	if out := mustRun(t, back()); out != "breth0: nothing to do: there is no such bridge, and no undo file names it\n" {
		t.Errorf("a second return prints:\n%s", out)
	}
}

// steady is a printed plan without lifetimes.
func steady(s string) string {
	return regexp.MustCompile(`(_lft|expires) [0-9]+s`).ReplaceAllString(s, "$1 N")
}
