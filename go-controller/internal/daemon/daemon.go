package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// readyEnv is the detached process's environment variable with the number of the file descriptor on which it reports
// that it works.
const readyEnv = "NORTHBOUND_DAEMON_READY_FD"

// readyFD is the first of exec.Cmd's ExtraFiles.
const readyFD = 3

// readyMessage is what the detached process writes once it works.
const readyMessage = "working\n"

// Options say how to run a daemon.
type Options struct {
	Pidfile string // "" for none
	LogFile string // "" for none
	Detach  bool   // run in the background
}

// Run calls work, in the foreground or, with Detach, in a process of its own session; it then returns as soon as that
// process calls ready. log is the log file, or nil; the detached process's standard error goes there, too. The pidfile
// exists while work runs. It is an error if the pidfile names a process that still runs this program.
func Run(ctx context.Context, o Options, work func(ctx context.Context, log io.Writer, ready func()) error) error {
	if o.Detach && os.Getenv(readyEnv) == "" {
		return o.detach()
	}
	log, err := o.openLog()
	if err != nil {
		return err
	}
	var to io.Writer // a nil *os.File would be a Writer that is not nil
	if log != nil {
		defer log.Close()
		to = log
	}
	if err := o.writePidfile(); err != nil {
		return err
	}
	defer o.removePidfile()
	ready := func() {}
	if os.Getenv(readyEnv) != "" {
		foreground := os.NewFile(readyFD, "ready")
		ready = func() {
			_, err := io.WriteString(foreground, readyMessage)
			// Until now, the foreground process read standard error. It is about to exit, so the log takes over.
			if err = errors.Join(err, foreground.Close(), redirect(log)); err != nil && log != nil {
				fmt.Fprintln(log, "leaving the foreground:", err)
			}
		}
	}
	return work(ctx, to, ready)
}

// redirect sends standard output and standard error to the log, or discards them if there is none.
func redirect(log *os.File) error {
	if log == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		log = null
	}
	return errors.Join(unix.Dup3(int(log.Fd()), 1, 0), unix.Dup3(int(log.Fd()), 2, 0))
}

// detach starts this program again in a session of its own and waits until it works or has exited.
func (o Options) detach() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("detaching: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = os.Args
	cmd.Env = append(os.Environ(), readyEnv+"="+strconv.Itoa(readyFD))
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = w // so that we can print the error of a process that exits before it works
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("detaching: %w", err)
	}
	output, err := readUntil(r, readyMessage)
	if err == nil {
		return cmd.Process.Release()
	}
	_ = cmd.Wait() // ProcessState has the result
	return fmt.Errorf("%s\nthe background process ended: %s", strings.TrimSpace(output), cmd.ProcessState)
}

// readUntil reads until the text ends in end. It fails if the other side closes before.
func readUntil(r io.Reader, end string) (string, error) {
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		text.Write(buf[:n])
		if strings.HasSuffix(text.String(), end) {
			return text.String(), nil
		}
		if err != nil {
			return text.String(), err
		}
	}
}

func (o Options) openLog() (*os.File, error) {
	if o.LogFile == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.LogFile), 0o755); err != nil {
		return nil, fmt.Errorf("opening --log-file: %w", err)
	}
	f, err := os.OpenFile(o.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("opening --log-file: %w", err)
	}
	return f, nil
}

func (o Options) writePidfile() error {
	if o.Pidfile == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Pidfile), 0o755); err != nil {
		return fmt.Errorf("writing --pidfile: %w", err)
	}
	raw, err := os.ReadFile(o.Pidfile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading --pidfile: %w", err)
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && pid != os.Getpid() && sameProgram(pid) {
		return fmt.Errorf("--pidfile %s: process %d runs already: end it first", o.Pidfile, pid)
	}
	if err := atomicfile.Write(o.Pidfile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing --pidfile: %w", err)
	}
	return nil
}

// sameProgram reports whether a process runs this program. A stale pidfile may have the number of another program's
// process.
func sameProgram(pid int) bool {
	const deleted = " (deleted)"
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	ours, ourErr := os.Readlink("/proc/self/exe")
	return errors.Join(err, ourErr) == nil && strings.TrimSuffix(theirs, deleted) == strings.TrimSuffix(ours, deleted)
}

func (o Options) removePidfile() {
	if o.Pidfile == "" {
		return
	}
	raw, err := os.ReadFile(o.Pidfile)
	if err == nil && strings.TrimSpace(string(raw)) == strconv.Itoa(os.Getpid()) {
		if err := os.Remove(o.Pidfile); err != nil {
			fmt.Fprintln(os.Stderr, "removing --pidfile:", err)
		}
	}
}
