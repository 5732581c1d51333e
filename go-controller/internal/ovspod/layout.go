package ovspod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// Layout says where Open vSwitch's files are.
type Layout struct {
	Sockets string // directory of sockets and files with process IDs
	File    string // the Open_vSwitch database
	Schema  string // of the database
}

// socket is where the database listens.
func (l Layout) socket() string { return filepath.Join(l.Sockets, "db.sock") }

// saved is the directory of the Flows of an ovs-vswitchd that has ended. It does not survive a reboot.
func (l Layout) saved() string { return filepath.Join(l.Sockets, "northbound-flows") }

// How long a program of Open vSwitch may take, and how long a daemon may take to end.
const (
	toolTimeout = 30 * time.Second
	endTimeout  = 10 * time.Second
	lookAgain   = 100 * time.Millisecond
	// Shorter than a pod's terminationGracePeriodSeconds.
	outliveTimeout = 20 * time.Second
)

// ErrHostRuns says that the machine's own Open vSwitch runs.
var ErrHostRuns = errors.New("this machine's own Open vSwitch runs already: stop and disable it, for example with " +
	"`systemctl disable --now openvswitch-switch`, or set openvswitch.inPods=false in the chart's values")

// databaseAnswers tells whether a program listens on the database's socket.
func (l Layout) databaseAnswers() bool {
	conn, err := net.DialTimeout("unix", l.socket(), time.Second)
	if err != nil {
		return !protocol.IsAbsent(err)
	}
	conn.Close()
	return true
}

// switchAnswers tells whether an ovs-vswitchd runs. One that does not answer may only be busy.
func (l Layout) switchAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := ovs.Appctl(ctx, l.Sockets, "ovs-vswitchd", "version")
	return !protocol.IsAbsent(err)
}

// tool runs a program of Open vSwitch, and returns what it printed, without blanks at the ends.
func (l Layout) tool(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = l.environment(), &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// vsctl runs ovs-vsctl(8). It does not wait for ovs-vswitchd.
func (l Layout) vsctl(ctx context.Context, args ...string) (string, error) {
	return l.tool(ctx, "ovs-vsctl", append([]string{"--no-wait", "--timeout=10", "--db=unix:" + l.socket()}, args...)...)
}

// environment is that of Open vSwitch's programs.
func (l Layout) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+l.Sockets)
}

// daemon runs a daemon of Open vSwitch until it ends, or until ctx does. SIGTERM ends it: ovs-vswitchd then leaves
// everything as it is, other than after `ovs-appctl exit`, which removes interfaces of the userspace datapath.
func (l Layout) daemon(ctx context.Context, name string, args ...string) error {
	args = append(args, "--no-chdir", "--pidfile", "-vconsole:info", "-vsyslog:off", "-vfile:off")
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = l.environment(), os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	// Pdeathsig fires when the forking thread ends (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("running %s: it ended by itself: %w", name, err)
}

// stableAfter is how long a daemon must have run to be started again at once. The kubelet would wait longer each time.
const stableAfter = 10 * time.Second

// keepRunning runs a daemon until ctx ends, and starts it again when it dies. It returns an error if it dies at once.
func keepRunning(ctx context.Context, log *slog.Logger, name string, run func(context.Context) error) error {
	for {
		start := time.Now()
		err := run(ctx)
		if ctx.Err() != nil || time.Since(start) < stableAfter {
			return err
		}
		log.Error("a daemon is started again", "daemon", name, "error", err)
	}
}

// pause waits a moment. It returns an error if ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
