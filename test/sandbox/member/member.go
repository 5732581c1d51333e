package member

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Member is a machine of a sandbox.
type Member struct {
	Spec   Spec
	record record
}

// Start makes the member's directories and starts its Init with program (the sandbox binary). It returns when services
// can be started. If the caller dies in the middle, Kill still finds everything: Init waits until its process is
// recorded, and ends if the caller dies before.
func Start(ctx context.Context, program string, spec Spec) (*Member, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	for _, d := range []string{spec.LogDir(), spec.RunDir()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("making member %s: %w", spec.Name, err)
		}
	}
	if err := writeJSON(spec.specFile(), spec); err != nil {
		return nil, err
	}
	m := &Member{Spec: spec}
	exited, err := m.launch(program)
	if err != nil {
		return nil, fmt.Errorf("starting member %s: %w", spec.Name, err)
	}
	for {
		if _, err := m.Services(ctx); err == nil {
			return m, nil
		}
		select {
		case <-exited:
			return nil, fmt.Errorf("starting member %s: its init ended: %s", spec.Name, m.LogTail("init"))
		case <-ctx.Done():
			return nil, fmt.Errorf("starting member %s: %w", spec.Name, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// launch starts Init in new namespaces, records it, and lets it continue.
func (m *Member) launch(program string) (exited chan struct{}, err error) {
	logFile, err := os.Create(m.logFile("init"))
	if err != nil {
		return nil, fmt.Errorf("making its log: %w", err)
	}
	defer logFile.Close()
	waits, goes, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer goes.Close()
	cmd := exec.Command(program, "init", m.Spec.specFile())
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, []*os.File{waits}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	err = cmd.Start()
	waits.Close()
	if err != nil {
		return nil, err
	}
	exited = make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says how it ended
		close(exited)
	}()
	_, start, err := stat(cmd.Process.Pid)
	if err == nil {
		m.record = record{PID: cmd.Process.Pid, Start: start}
		err = writeJSON(m.Spec.recordFile(), m.record)
	}
	if err == nil {
		_, err = goes.Write([]byte{1})
	}
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	return exited, nil
}

// Open finds a member that Start made, running or not. The error is fs.ErrNotExist if there is none.
func Open(state, name string) (*Member, error) {
	m := &Member{Spec: Spec{Name: name, State: state}}
	if err := readJSON(m.Spec.specFile(), &m.Spec); err != nil {
		return nil, err
	}
	if err := readJSON(m.Spec.recordFile(), &m.record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return m, nil
}

// PID returns Init's process id on the host, 0 if it has ended.
func (m *Member) PID() int {
	if m.record.PID == 0 {
		return 0
	}
	if state, start, err := stat(m.record.PID); err != nil || start != m.record.Start || state == "Z" || state == "X" {
		return 0
	}
	return m.record.PID
}

// Kill ends the member: every process, mount and link of it. It returns when they are gone, and succeeds if the member
// has ended before.
func (m *Member) Kill(ctx context.Context) error {
	if m.record.PID == 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(m.record.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("killing member %s (process %d): %w", m.Spec.Name, m.record.PID, err)
	}
	defer unix.Close(fd)
	// fd always refers to the same process from here on. Check that it is Init and not another process that reused its id.
	if _, start, err := stat(m.record.PID); err != nil || start != m.record.Start {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing member %s (process %d): %w", m.Spec.Name, m.record.PID, err)
	}
	// fd becomes readable when the last thread has ended (pidfd_open(2)). That waits for every process of the namespace
	// (pid_namespaces(7)).
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for member %s (process %d) to end: %w", m.Spec.Name, m.record.PID, err)
		}
	}
	return fmt.Errorf("waiting for member %s (process %d) to end: %w", m.Spec.Name, m.record.PID, ctx.Err())
}

// stat returns the state of a process, and its start time in clock ticks after boot (proc_pid_stat(5), fields 3 and
// 22).
func stat(pid int) (state, start string, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", "", err
	}
	// The second field is the program's name in parentheses. It may have spaces.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return "", "", fmt.Errorf("reading /proc/%d/stat: %d fields after the name, want 20 at least", pid, len(fields))
	}
	return fields[0], fields[19], nil
}

func (m *Member) logFile(service string) string {
	return filepath.Join(m.Spec.LogDir(), service+".log")
}

// LogTail returns the end of a service's log, for error messages.
func (m *Member) LogTail(service string) string {
	b, err := os.ReadFile(m.logFile(service))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
