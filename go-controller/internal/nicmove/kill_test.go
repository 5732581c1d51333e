package nicmove_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A mover that is killed before any step of a move or a return leaves a reachable node with its old configuration: the
// watchdog restores it.
func TestKill(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before := dump(t, "eth0")
	steps := func(what string, prepare func(), c call) {
		for step := 1; ; step++ {
			prepare()
			cmd, more := runTo(t, c, step, syscall.SIGKILL)
			if !more {
				if step < 30 {
					t.Errorf("%s has only %d steps", what, step-1)
				}
				t.Logf("%s: killed before each of %d steps", what, step-1)
				break
			}
			_ = cmd.Wait() // it was killed
			awaitTakeOver(t)
			testkit.Eventually(t, "the kernel to forget the bridge's interface", func() string {
				return ghosts(t)
			})
			same(t, fmt.Sprintf("%s, killed before step %d: eth0", what, step), dump(t, "eth0"), before)
			clean(t)
			if t.Failed() {
				text, _ := os.ReadFile(stateDir + "/eth0.watchdog.log")
				t.Fatalf("the watchdog says:\n%s", text)
			}
		}
	}
	steps("the move", func() {}, forward())
	reachable(t)
	mustRun(t, back())
	steps("the return", func() { mustRun(t, forward()) }, back())
	reachable(t)
	clean(t)
	same(t, "eth0 at the end", dump(t, "eth0"), before)
}

// ghosts matches routes of removed interfaces, which the kernel still lists for a moment.
func ghosts(t *testing.T) string {
	t.Helper()
	return testkit.Run(t, "sh", "-c", "ip -6 route show table all | grep -E ' dev (if[0-9]|breth0)' || true")
}

// awaitTakeOver waits until the watchdog reports that it has finished.
func awaitTakeOver(t *testing.T) {
	t.Helper()
	awaitLog(t, "it has its configuration again")
}

// awaitLog waits until the watchdog has logged the text.
func awaitLog(t *testing.T, part string) {
	t.Helper()
	testkit.Eventually(t, "the watchdog's work", func() string {
		text, err := os.ReadFile(stateDir + "/eth0.watchdog.log")
		if err != nil || !strings.Contains(string(text), part) {
			return "it says: " + string(text)
		}
		return ""
	})
}

// The watchdog kills a mover that hangs, and undoes the move.
func TestHang(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before := dump(t, "eth0")
	c := forward()
	c.Silence = time.Second
	cmd, _ := runTo(t, c, 20, syscall.SIGSTOP)
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the mover's end: %v", err)
	}
	awaitTakeOver(t)
	same(t, "eth0", dump(t, "eth0"), before)
	clean(t)
	reachable(t)
}

// If the watchdog is gone, too, as after a loss of power, the next call continues the move. At boot, an unconfirmed
// move is undone, and an interrupted return is finished.
func TestNobodyLeft(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	setUp(t, rich)
	before, had := dump(t, "eth0"), belongings(t, "eth0")
	interrupted := func(c call, step int) {
		cmd, more := runTo(t, c, step, syscall.SIGSTOP)
		if !more {
			t.Fatalf("there is no step %d", step)
		}
		for _, p := range processes(t) { // the watchdog before the mover
			if p != strconv.Itoa(cmd.Process.Pid) {
				testkit.Run(t, "kill", "-9", p)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		testkit.Eventually(t, "their ends", func() string { return strings.Join(processes(t), " ") })
	}
	for _, step := range []int{2, 17, 31, 43} {
		interrupted(forward(), step)
		out := mustRun(t, forward())
		if !strings.Contains(out, "continuing an interrupted move") {
			t.Errorf("continuing from step %d prints:\n%s", step, out)
		}
		same(t, "what breth0 has", belongings(t, "breth0"), had)
		interrupted(back(), 12)
		if out, err := run(t, forward()); err == nil || !strings.Contains(err.Error(),
			"its return was interrupted: run bridges-to-nic breth0") {
			t.Errorf("moving when the return was interrupted: %v\n%s", err, out)
		}
		mustRun(t, back())
		same(t, "eth0", dump(t, "eth0"), before)
		clean(t)
	}
	boot := forward()
	boot.Options.Boot = true
	interrupted(forward(), 31)
	if out, err := run(t, boot); err == nil || !strings.Contains(err.Error(),
		"rolled back: the move to breth0 had not been confirmed when this host stopped") {
		t.Errorf("at boot: %v\n%s", err, out)
	}
	same(t, "eth0", dump(t, "eth0"), before)
	clean(t)
	mustRun(t, forward())
	interrupted(back(), 12)
	mustRun(t, boot)
	same(t, "eth0", dump(t, "eth0"), before)
	clean(t)
}

// If ovs-vswitchd dies during a move, the move is undone without it. If its database is gone, too, the host is
// reachable through the NIC, and the bridge is removed once the database is back.
func TestOpenVSwitchDies(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := setUp(t, rich)
	before := dump(t, "eth0")
	for _, database := range []bool{false, true} {
		cmd, _ := runTo(t, forward(), 35, syscall.SIGSTOP)
		vs.StopDaemon(t)
		if database {
			vs.StopDB(t)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if database {
			awaitLog(t, "~ link breth0 mac 0a:58:00:00:00:01 mtu 1400 down (was: ")
			reachable(t)
			vs.StartDB(t)
		}
		awaitTakeOver(t)
		testkit.Run(t, "sh", "-c", "ip link del ovs-netdev; true")    // the daemon's own
		testkit.Run(t, "ip", "link", "set", "eth0", "promisc", "off") // the daemon's, too
		same(t, "eth0", dump(t, "eth0"), before)
		clean(t)
		reachable(t)
		vs.StartDaemon(t)
	}
}
