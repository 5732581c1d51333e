package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
)

// mark is an environment variable of the program inside the namespace.
const mark = "NORTHBOUND_OWN_NETNS"

// Main is the body of a TestMain: it runs the tests inside the namespace, and returns the exit code. What keeps it from
// that it prints.
func Main(run func() int) int {
	inside, code, err := Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if inside {
		return run()
	}
	return code
}

// Enter must be called first in main. Outside, it runs the program again inside the namespace, with the same arguments
// and files, and returns its exit code, with which the caller must exit. Inside, it sets the loopback device up and
// returns inside = true.
func Enter() (inside bool, code int, err error) {
	if os.Getenv(mark) != "" {
		if err := os.Unsetenv(mark); err != nil {
			return true, 0, fmt.Errorf("entering a network namespace: %w", err)
		}
		return true, 0, loopbackUp()
	}
	code, err = again()
	return false, code, err
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("setting the loopback device up: %w", err)
	}
	return nil
}

// again runs the program in a new network namespace and a new mount namespace, and forwards signals.
func again() (code int, err error) {
	// Pdeathsig fires when the thread that forked ends (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), mark+"=1")
	// With a mount namespace of its own, nothing that it mounts outlives it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("making a network namespace, which needs root: %w", err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s) // it may have exited meanwhile
			case <-done:
				return
			}
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("waiting for the program in its network namespace: %w", err)
	}
	return cmd.ProcessState.ExitCode(), nil
}
