package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// tail is the size of the part of a log in errors.
const tail = 2000

// Process is a running program whose output goes to a file.
type Process struct {
	Name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// Start runs a program and appends its output to the file logPath.
func Start(name, logPath, path string, args ...string) (*Process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, cmd: exec.Command(path, args...), log: logPath, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A process group of its own: an interrupt from the terminal reaches only the caller, which then stops its processes
	// in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig fires when the thread that forked ends (prctl(2)), so the thread must live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		_ = out.Close() // the process has its own descriptor
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its log says how it ended
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// ExitCode is the exit code of a process that has ended, -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stop sends SIGTERM, and SIGKILL if the process still runs after grace. It returns when the process is gone. It is an
// error if SIGKILL was needed.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
	}
	err := p.Kill()
	return errors.Join(fmt.Errorf("ending %s: still there %s after SIGTERM", p.Name, grace), err)
}

// Kill sends SIGKILL and returns when the process is gone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.Name, err)
	}
	<-p.done
	return nil
}

// Tail returns the end of the process's output.
func (p *Process) Tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(b) > tail {
		b = b[len(b)-tail:]
	}
	return strings.TrimSpace(string(b))
}

// Logged tells whether the process's output so far has a text, whatever the case of its letters.
func (p *Process) Logged(text string) (bool, error) {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return false, fmt.Errorf("reading what %s has written: %w", p.Name, err)
	}
	return bytes.Contains(bytes.ToLower(b), bytes.ToLower([]byte(text))), nil
}

// Find returns the path of a program, from PATH and the directories where distributions install daemons. If there is
// none, the error has want, which says what to install.
func Find(name, want string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not there: install %s", name, want)
}
