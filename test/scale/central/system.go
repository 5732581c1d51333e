package central

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const (
	startTimeout = 60 * time.Second
	pollInterval = 5 * time.Millisecond
	mount        = "/mnt" // of the directory of sockets, in the root filesystem
)

// Release is a root filesystem with OVN.
type Release struct{ Root, Version string }

// System is a root filesystem, and a directory for what runs from it.
type System struct {
	Root, Dir string // Dir is on the host

	servers []*process.Process // of databases
}

// New prepares a directory below that of all, which is mounted by Mount.
func New(root, all, name string) (*System, error) {
	s := &System{Root: root, Dir: filepath.Join(all, name)}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	return s, nil
}

// Mount shows a directory, and the kernel's files, in a root filesystem.
func Mount(root, dir string) error {
	for from, to := range map[string]string{dir: mount, "/proc": "/proc", "/dev": "/dev"} {
		if err := unix.Mount(from, filepath.Join(root, to), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s in %s: %w", from, root, err)
		}
	}
	return nil
}

// Inside is the path of a file of Dir in the root filesystem.
func (s *System) Inside(name string) string { return filepath.Join(mount, filepath.Base(s.Dir), name) }

// arguments are those of chroot, to run a program.
func (s *System) arguments(program []string) []string {
	here := s.Inside("")
	return append([]string{s.Root, "env", "OVS_RUNDIR=" + here, "OVN_RUNDIR=" + here, "OVS_LOGDIR=" + here,
		"OVN_LOGDIR=" + here, "OVS_DBDIR=" + here}, program...)
}

// Start starts a daemon. chroot and env become it, so the process is the daemon's.
func (s *System) Start(name string, program ...string) (*process.Process, error) {
	chroot, err := process.Find("chroot", "coreutils")
	if err != nil {
		return nil, err
	}
	program = append(program, "--no-chdir", "-vsyslog:off", "--unixctl="+s.Inside(name+".ctl"))
	return process.Start(name, filepath.Join(s.Dir, name+".log"), chroot, s.arguments(program)...)
}

// Run runs a program and returns its output.
func (s *System) Run(ctx context.Context, program ...string) (string, error) {
	chroot, err := process.Find("chroot", "coreutils")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, chroot, s.arguments(program)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s: %w: %s", program[0], err, out)
	}
	return string(out), nil
}

// Appctl asks a daemon.
func (s *System) Appctl(ctx context.Context, daemon string, command ...string) (string, error) {
	return s.Run(ctx, append([]string{"ovn-appctl", "--timeout=300", "-t", s.Inside(daemon + ".ctl")}, command...)...)
}

// Database creates a database and starts its server, with its socket NAME.sock and its file NAME.db in Dir.
func (s *System) Database(ctx context.Context, name, schema string) (*ovsdbwire.Client, *process.Process, error) {
	if _, err := s.Run(ctx, "ovsdb-tool", "create", s.Inside(name+".db"), "/usr/share/"+schema); err != nil {
		return nil, nil, err
	}
	p, err := s.Start(name, "ovsdb-server", "--remote=punix:"+s.Inside(name+".sock"), s.Inside(name+".db"))
	if err != nil {
		return nil, nil, err
	}
	s.servers = append(s.servers, p)
	c, err := s.Dial(ctx, name)
	return c, p, err
}

// Socket is the path of a database's socket on the host.
func (s *System) Socket(name string) string { return filepath.Join(s.Dir, name+".sock") }

// Dial connects to a database when its server listens.
func (s *System) Dial(ctx context.Context, name string) (*ovsdbwire.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		c, err := ovsdbwire.Dial(s.Socket(name))
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// Northd starts ovn-northd for the databases "nb" and "sb".
func (s *System) Northd() (*process.Process, error) {
	return s.Start("northd", "ovn-northd", "--ovnnb-db=unix:"+s.Inside("nb.sock"), "--ovnsb-db=unix:"+s.Inside("sb.sock"))
}

// Close ends the servers of databases. Their data is removed, so they need not end in order.
func (s *System) Close() error {
	var errs []error
	for _, p := range s.servers {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// Recomputes counts how often a daemon has computed each node of its incremental engine anew.
func (s *System) Recomputes(ctx context.Context, daemon string) (map[string]int, error) {
	text, err := s.Appctl(ctx, daemon, "inc-engine/show-stats")
	if err != nil {
		return nil, err
	}
	return parseRecomputes(text), nil
}

// parseRecomputes parses the answer to inc-engine/show-stats.
func parseRecomputes(text string) map[string]int {
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`Node: (\S+)\s+- recompute:\s+(\d+)`).FindAllStringSubmatch(text, -1) {
		out[m[1]], _ = strconv.Atoi(m[2]) // it is digits
	}
	return out
}
