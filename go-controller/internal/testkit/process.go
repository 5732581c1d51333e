package testkit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take to listen, and stopTimeout
// how long it may take to end.
const (
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second
	pollInterval = 5 * time.Millisecond
)

// Tool is the path of an OVS or OVN program, looked up in PATH and where
// Debian puts it. A missing one fails the test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/usr/share/openvswitch/scripts", "/usr/share/ovn/scripts"} {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() {
			return p
		}
	}
	t.Fatalf("%s is not installed: install openvswitch-common ovn-common", name)
	return ""
}

// Run runs a program to its end and returns its standard output. A failure
// fails the test with what the program wrote.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Tool(t, name), args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, exit.Stderr)
		}
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

// process is a server that ends with the test, and also with the test binary
// when that is killed.
type process struct {
	cmd  *exec.Cmd
	out  Buffer
	done chan struct{} // closed when the process is gone
}

// start runs a server until the test ends.
func start(t testing.TB, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig fires when the thread that forked ends (prctl(2)), so that
		// thread must last as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is for waiters to judge by its output
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	t.Cleanup(func() { p.stop(t) })
	return p
}

// Stop ends the process and waits until it is gone.
func (p *process) stop(t testing.TB) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("ending %s: %v", p.cmd.Path, err)
	}
	select {
	case <-p.done:
		return
	case <-time.After(stopTimeout):
		t.Errorf("%s did not end on SIGTERM within %s: killing it", filepath.Base(p.cmd.Path), stopTimeout)
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// waitFor waits until ready returns true; the test fails when the process ends
// before, or takes longer than startTimeout.
func (p *process) waitFor(t testing.TB, what string, ready func() bool) {
	t.Helper()
	deadline := time.After(startTimeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !ready() {
		select {
		case <-p.done:
			t.Fatalf("%s ended before %s: %s", p.cmd, what, p.out.String())
		case <-deadline:
			t.Fatalf("%s: not %s after %s: %s", p.cmd, what, startTimeout, p.out.String())
		case <-tick.C:
		}
	}
}

// Buffer is a bytes.Buffer that a process may write while a test reads.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is what has been written so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
