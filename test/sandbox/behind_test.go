package sandbox_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox/control"
)

// TestCrashIsReported crashes ovn-northd. Every check of the sandbox names it from then on.
func TestCrashIsReported(t *testing.T) {
	c := up(t, options(t, "test-crash"))
	if err := c.CheckSwitches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.CheckFollowed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Control.StopService(t.Context(), control.Northd, syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	if err := c.CheckSwitches(t.Context()); err == nil || !strings.Contains(err.Error(), "control/northd crashed") {
		t.Errorf("after a crash of ovn-northd: %v", err)
	}
	if err := c.CheckFollowed(t.Context()); err == nil || !strings.Contains(err.Error(), "control/northd has ended") {
		t.Errorf("ovn-northd does not follow the Northbound database: %v", err)
	}
}
