package nicmove

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Messages between a mover and its watchdog, one on each line.
const (
	msgReady = "ready" // from the watchdog: it has started
	msgAlive = "alive" // from the mover: the next step begins
	msgDone  = "done"  // from the mover: there is nothing to undo
)

// logSuffix is the end of the name of the watchdog's log file.
const logSuffix = ".watchdog.log"

// readyTimeout is how long the watchdog may take to start.
const readyTimeout = 10 * time.Second

// How long the watchdog tries to restore a NIC while Open vSwitch does not answer, and the pause between two attempts.
const (
	retryTimeout = 10 * time.Minute
	retryPause   = time.Second
)

// Watchdog is the mover's handle on the watchdog process.
type Watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startWatchdog starts the watchdog in a session of its own, out of this process's cgroup, and returns once it watches.
// The watchdog notices the end of this process by the end of the pipe.
func startWatchdog(argv []string, log string) (*Watchdog, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	defer output.Close()
	cmd.Stderr = output
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	defer r.Close()
	cmd.Stdin = r
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	if err := leaveCgroup(cmd.Process.Pid); err != nil {
		why := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(output, "the watchdog may end together with the command: %s\n", why)
	}
	d := &Watchdog{cmd, w}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if line == msgReady+"\n" {
			return d, nil
		}
	case <-time.After(readyTimeout):
	}
	d.end()
	text, _ := os.ReadFile(log)
	return nil, fmt.Errorf("starting the watchdog: it did not report ready: %s", text)
}

// beat tells the watchdog that the mover is alive.
func (d *Watchdog) beat() {
	if d != nil {
		_, _ = io.WriteString(d.pipe, msgAlive+"\n") // the move continues even if the watchdog is gone
	}
}

// leave lets the watchdog finish the work.
func (d *Watchdog) leave() {
	if d != nil {
		d.pipe.Close()
		_ = d.cmd.Process.Release()
	}
}

// end tells the watchdog that there is nothing to undo, and waits for it.
func (d *Watchdog) end() {
	if d == nil {
		return
	}
	_, _ = io.WriteString(d.pipe, msgDone+"\n")
	d.pipe.Close()
	_ = d.cmd.Wait() // its exit status does not matter
}

// Watch does the watchdog's work. It reports on out that it has started, and reads the mover's messages from in. If
// they end without msgDone, or none arrives for o.Silence, it kills the mover and undoes the move. m logs what it does.
func Watch(ctx context.Context, m *Mover, o WatchOptions, in io.Reader, out io.Writer) error {
	mover := os.Getppid()
	messages := make(chan string)
	go func() {
		defer close(messages)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			messages <- lines.Text()
		}
	}()
	if _, err := fmt.Fprintln(out, msgReady); err != nil {
		return fmt.Errorf("answering the mover: %w", err)
	}
	for {
		select {
		case message, ok := <-messages:
			if message == msgDone {
				return nil
			}
			if !ok {
				return m.takeOver(ctx, o, "the process that moved it has died")
			}
		case <-time.After(o.Silence):
			// Since the pipe is open, the mover exists and still has this process id.
			if err := syscall.Kill(mover, syscall.SIGKILL); err != nil {
				return fmt.Errorf("killing process %d, which reported nothing for %s: %w", mover, o.Silence, err)
			}
			return m.takeOver(ctx, o, fmt.Sprintf("the process that moved it reported nothing for %s", o.Silence))
		}
	}
}

// WatchOptions say which move a watchdog watches.
type WatchOptions struct {
	NIC, Session string
	Silence      time.Duration
}

// takeOver restores the NIC if the move, or the return, of the session is unfinished.
func (m *Mover) takeOver(ctx context.Context, o WatchOptions, why string) error {
	unlock, err := m.Store.Lock(o.NIC, true)
	if err != nil {
		return err
	}
	defer unlock()
	u, ok, err := m.Store.Load(o.NIC)
	if err != nil || !ok || u.Session != o.Session || u.State == Moved {
		return err // finished, or another session has taken over
	}
	m.say("%s: %s: restoring its configuration", o.NIC, why)
	for begun := m.Now(); ; {
		err := m.back(ctx, u)
		if err == nil {
			break
		}
		m.say("%s: %v", o.NIC, err)
		if m.Now().Sub(begun) > retryTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
	m.say("%s: it has its configuration again; bridge %s is removed", o.NIC, u.Bridge)
	return nil
}
