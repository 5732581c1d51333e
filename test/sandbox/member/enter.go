package member

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Command returns a program to run in the member, with its files, processes and network, like exec.CommandContext.
func (m *Member) Command(ctx context.Context, argv ...string) *exec.Cmd {
	args := append([]string{"--target", strconv.Itoa(m.record.PID), "--mount", "--net", "--pid", "--uts", "--ipc",
		"--wd=/", "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = Environment()
	return cmd
}

// NetworkCommand returns a program of the host to run with the host's files in the member's network.
func (m *Member) NetworkCommand(ctx context.Context, argv ...string) *exec.Cmd {
	args := append([]string{"--target", strconv.Itoa(m.record.PID), "--net", "--"}, argv...)
	return exec.CommandContext(ctx, "nsenter", args...)
}

// Run runs a program in the member and returns its standard output. An error has its standard error.
func (m *Member) Run(ctx context.Context, argv ...string) (string, error) {
	if m.PID() == 0 {
		return "", fmt.Errorf("running %s in %s: it isn't up", argv[0], m.Spec.Name)
	}
	cmd := m.Command(ctx, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %q in %s: %w: %s", strings.Join(argv, " "), m.Spec.Name, err,
			strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Netlink returns a handle in the member's network namespace. The caller closes it.
func (m *Member) Netlink() (*netlink.Handle, error) {
	ns, err := netns.GetFromPid(m.record.PID)
	if err != nil {
		return nil, fmt.Errorf("entering the network of %s: %w", m.Spec.Name, err)
	}
	defer closeNS(ns)
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil, fmt.Errorf("entering the network of %s: %w", m.Spec.Name, err)
	}
	return h, nil
}

// Dial opens a connection from the member's network. address must be numeric. It fits http.Transport and rest.Config.
func (m *Member) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("dialling from %s: %w", m.Spec.Name, err)
	}
	var conn net.Conn
	err := m.Within(func() error {
		var err error
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dialling from %s: %w", m.Spec.Name, err)
	}
	return conn, nil
}

// Within runs do on a thread in the member's network namespace. Sockets that do makes itself, not in goroutines, stay
// in it. A thread that cannot be moved back is not used again.
func (m *Member) Within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			done <- err
			return
		}
		defer closeNS(home)
		ns, err := netns.GetFromPid(m.record.PID)
		if err != nil {
			done <- err
			return
		}
		defer closeNS(ns)
		if err := netns.Set(ns); err != nil {
			done <- err
			return
		}
		err = do()
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// closeNS closes a handle of a namespace. The namespace stays.
func closeNS(ns netns.NsHandle) { _ = ns.Close() }
