package nicmove

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Words between a mover and its watchdog, one a line.
const (
	wordReady = "ready" // from the watchdog: it has begun
	wordAlive = "alive" // a step is about to be made
	wordDone  = "done"  // there is nothing to take back any more
)

// logSuffix ends the name of the file in which the watchdog tells what it did.
const logSuffix = ".watchdog.log"

// readyTimeout is how long the watchdog may take to begin.
const readyTimeout = 10 * time.Second

// How long the watchdog goes on trying to give a NIC back what it had, when
// Open vSwitch does not answer, and the time between two attempts.
const (
	patience   = 10 * time.Minute
	retryPause = time.Second
)

// Watchdog is the other process, seen from the mover.
type Watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startWatchdog starts the watchdog in a session of its own, and returns when
// it watches. It learns of this process' end by the end of the pipe.
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
	d := &Watchdog{cmd, w}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if line == wordReady+"\n" {
			return d, nil
		}
	case <-time.After(readyTimeout):
	}
	d.end()
	text, _ := os.ReadFile(log)
	return nil, fmt.Errorf("starting the watchdog: it does not watch: %s", text)
}

// beat tells the watchdog that the mover is at work.
func (d *Watchdog) beat() {
	if d != nil {
		_, _ = io.WriteString(d.pipe, wordAlive+"\n") // one that is gone can't be told, and the work goes on
	}
}

// leave leaves what is not done to the watchdog.
func (d *Watchdog) leave() {
	if d != nil {
		d.pipe.Close()
		_ = d.cmd.Process.Release()
	}
}

// end tells the watchdog that it is not needed any more, and waits for it.
func (d *Watchdog) end() {
	if d == nil {
		return
	}
	_, _ = io.WriteString(d.pipe, wordDone+"\n")
	d.pipe.Close()
	_ = d.cmd.Wait() // how it ended makes no difference here
}

// Watch is the watchdog's work: it reads what the mover says on in, and when
// that ends before the last word, or nothing comes for the time of silence, it
// ends the mover and takes the move back. It answers on out when it has begun.
// What it does then is told by m.
func Watch(ctx context.Context, m *Mover, o WatchOptions, in io.Reader, out io.Writer) error {
	mover := os.Getppid()
	words := make(chan string)
	go func() {
		defer close(words)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			words <- lines.Text()
		}
	}()
	if _, err := fmt.Fprintln(out, wordReady); err != nil {
		return fmt.Errorf("answering the mover: %w", err)
	}
	for {
		select {
		case word, ok := <-words:
			if word == wordDone {
				return nil
			}
			if !ok {
				return m.takeOver(ctx, o, "the process that moved it has died")
			}
		case <-time.After(o.Silence):
			// The pipe is open, so the mover is there, and this is its number.
			if err := syscall.Kill(mover, syscall.SIGKILL); err != nil {
				return fmt.Errorf("ending process %d, which has said nothing for %s: %w", mover, o.Silence, err)
			}
			return m.takeOver(ctx, o, fmt.Sprintf("the process that moved it had said nothing for %s", o.Silence))
		}
	}
}

// WatchOptions says what a watchdog watches.
type WatchOptions struct {
	NIC, Session string
	Silence      time.Duration
}

// takeOver takes back, or finishes the way back of, what is the session's and
// not yet done.
func (m *Mover) takeOver(ctx context.Context, o WatchOptions, why string) error {
	unlock, err := m.Store.Lock(o.NIC, true)
	if err != nil {
		return err
	}
	defer unlock()
	u, ok, err := m.Store.Load(o.NIC)
	if err != nil || !ok || u.Session != o.Session || u.State == Moved {
		return err // finished, or somebody else's by now
	}
	m.say("%s: %s: giving %s back what it had", o.NIC, why, o.NIC)
	for begun := m.Now(); ; {
		err := m.back(ctx, u)
		if err == nil {
			break
		}
		m.say("%s: %v", o.NIC, err)
		if m.Now().Sub(begun) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
	m.say("%s: it has all of it again; bridge %s is removed", o.NIC, u.Bridge)
	return nil
}
