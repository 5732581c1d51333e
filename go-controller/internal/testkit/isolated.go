package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// isolatedEnv marks the process in which an isolated test runs.
const isolatedEnv = "NORTHBOUND_TEST_ISOLATED"

// Isolated gives the calling test namespaces of its own: network (with lo up),
// mount (with empty /run, /var/lib and /var/log) and process ids. It starts the
// test binary again in them, for this one test only, and returns true there; in
// the original process it reports the outcome and returns false, upon which the
// test must return. Whatever the test makes, processes, namespaces, interfaces and files
// below these, is gone when that process is, however it ends. It needs root.
// Programs of ours that the test runs are built before, see RunWith.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(isolatedEnv) == t.Name() {
		enterIsolation(t)
		return true
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and Open vSwitch ports: run it as root")
	}
	var parts []string
	for _, p := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+p+"$")
	}
	timeout := 2 * time.Minute
	if d, ok := t.Deadline(); ok {
		timeout = time.Until(d) - 5*time.Second
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run="+strings.Join(parts, "/"),
		"-test.v", "-test.count=1", "-test.timeout="+timeout.String())
	cmd.Env = append(os.Environ(), isolatedEnv+"="+t.Name())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	// Pdeathsig fires when the forking thread ends (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Errorf("in namespaces of its own: %v\n%s\nall that it printed:\n%s", err, complaints(out.String()), out.String())
		return false
	}
	if !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("in namespaces of its own the test did not run:\n%s", out.String())
	}
	t.Logf("in namespaces of its own:\n%s", out.String())
	return false
}

// complaints are the lines that tests printed, with what they hold over several lines, without the logs of the
// programs: what a reader of a long output looks for.
func complaints(out string) string {
	printed := regexp.MustCompile(`^    \w+\.go:\d+: `)
	var found []string
	inside := false
	for line := range strings.Lines(out) {
		switch {
		case strings.HasPrefix(line, "        "): // goes on
		default:
			inside = printed.MatchString(line) || strings.HasPrefix(line, "panic:")
		}
		if inside {
			found = append(found, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(found, "\n")
}

func enterIsolation(t *testing.T) {
	t.Helper()
	for _, m := range []struct {
		source, target, fstype string
		flags                  uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"sysfs", "/sys", "sysfs", 0}, // of this network namespace
		{"tmpfs", "/run", "tmpfs", 0},
		{"tmpfs", "/var/lib", "tmpfs", 0}, // the undo files of programs that are tried
		{"tmpfs", "/var/log", "tmpfs", 0},
	} {
		if err := unix.Mount(m.source, m.target, m.fstype, m.flags, ""); err != nil {
			t.Fatalf("mounting %s: %v", m.target, err)
		}
	}
	Run(t, "ip", "link", "set", "lo", "up")
	copyPrograms(t)
}

// VSwitch is a running Open vSwitch with its userspace datapath.
type VSwitch struct {
	Address    string // of its database, unix:PATH
	DB, Daemon *process
}

// StartVSwitch starts ovsdb-server and ovs-vswitchd in the calling test's
// namespaces, see Isolated, at their default places below /run.
func StartVSwitch(t *testing.T) *VSwitch {
	t.Helper()
	dir := "/run/openvswitch"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	schema := "/usr/share/openvswitch/vswitch.ovsschema"
	if _, err := os.Stat(schema); err != nil {
		t.Fatalf("%v: install openvswitch-switch", err)
	}
	db := filepath.Join(dir, "conf.db")
	Run(t, "ovsdb-tool", "create", db, schema)
	v := &VSwitch{Address: "unix:" + dir + "/db.sock"}
	v.StartDB(t)
	Run(t, "ovs-vsctl", "--no-wait", "init", "--", "set", "Open_vSwitch", ".",
		"other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1")
	v.StartDaemon(t)
	return v
}

// StartDB starts ovsdb-server on the existing database.
func (v *VSwitch) StartDB(t *testing.T) {
	t.Helper()
	v.DB = start(t, Tool(t, "ovsdb-server"), "--pidfile", "--log-file=/run/openvswitch/ovsdb-server.log",
		"-vconsole:off", "--remote=punix:/run/openvswitch/db.sock", "/run/openvswitch/conf.db")
	v.DB.waitFor(t, "serving the Open_vSwitch database", func() bool {
		return exec.Command(Tool(t, "ovs-vsctl"), "--timeout=5", "--no-wait", "show").Run() == nil
	})
}

// StartDaemon starts ovs-vswitchd.
func (v *VSwitch) StartDaemon(t *testing.T) {
	t.Helper()
	v.Daemon = start(t, Tool(t, "ovs-vswitchd"), "--pidfile", "--log-file=/run/openvswitch/ovs-vswitchd.log",
		"-vconsole:off")
	v.Daemon.waitFor(t, "answering", func() bool {
		return exec.Command(Tool(t, "ovs-appctl"), "version").Run() == nil
	})
}

// StartOVN starts the Northbound and Southbound databases and ovn-northd, in the
// calling test's namespaces, see Isolated, at their default places below /run.
func StartOVN(t *testing.T) (sb string) {
	t.Helper()
	if err := os.MkdirAll("/run/ovn", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{"nb", "sb"} {
		schema, file, sock := "/usr/share/ovn/ovn-"+db+".ovsschema", "/run/ovn/"+db+".db", "/run/ovn/ovn"+db+"_db.sock"
		if _, err := os.Stat(schema); err != nil {
			t.Fatalf("%v: install ovn-common", err)
		}
		Run(t, "ovsdb-tool", "create", file, schema)
		p := start(t, Tool(t, "ovsdb-server"), "--unixctl=/run/ovn/"+db+".ctl", "--remote=punix:"+sock, file)
		p.waitFor(t, "serving "+file, func() bool {
			return exec.Command(Tool(t, "ovsdb-client"), "list-dbs", "unix:"+sock).Run() == nil
		})
	}
	start(t, Tool(t, "ovn-northd"), "--pidfile", "--log-file=/run/ovn/ovn-northd.log", "-vconsole:off",
		"--ovnnb-db=unix:/run/ovn/ovnnb_db.sock", "--ovnsb-db=unix:/run/ovn/ovnsb_db.sock")
	return "unix:/run/ovn/ovnsb_db.sock"
}

// Controller is a running ovn-controller.
type Controller struct{ process *process }

// StartOVNController starts ovn-controller on this namespace's Open vSwitch.
func StartOVNController(t *testing.T) *Controller {
	t.Helper()
	return &Controller{start(t, Tool(t, "ovn-controller"), "--pidfile",
		"--log-file=/run/ovn/ovn-controller.log", "-vconsole:emer")}
}

// Kill ends ovn-controller, as in a crash: its rows stay.
func (c *Controller) Kill() { c.process.kill() }

// StopDB ends ovsdb-server, as in a crash.
func (v *VSwitch) StopDB(t *testing.T) { t.Helper(); v.DB.kill() }

// StopDaemon ends ovs-vswitchd, as in a crash.
func (v *VSwitch) StopDaemon(t *testing.T) { t.Helper(); v.Daemon.kill() }

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Eventually waits until ok returns "", and fails the test with what it returned last when that takes longer than 20
// seconds. An ok that says what it got, and not what is wrong with it, returns "got " and that: an empty answer is no
// success.
func Eventually(t testing.TB, what string, ok func() string) {
	t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		why := ok()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s: %s", what, startTimeout, why)
		}
		time.Sleep(pollInterval)
	}
}
