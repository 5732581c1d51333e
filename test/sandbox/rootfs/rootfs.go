package rootfs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// DefaultCache is the directory of the root filesystems.
const DefaultCache = "/var/cache/northbound"

// MirrorVariable names the environment variable that overrides apt's mirror.
const MirrorVariable = "NORTHBOUND_MIRROR"

// packages are installed in addition to a minimal system.
func packages(choice Choice) []string {
	all := []string{
		"ovn-central", "ovn-host", "openvswitch-switch",
		"containerd", "runc", "containernetworking-plugins", "busybox-static",
		"iproute2", "iputils-ping", "ethtool", "tcpdump", "procps",
	}
	if choice == Newest {
		all = append(all, "iptables") // plugins use it; earlier releases depended on it
	}
	return all
}

// Choice selects a release of a distribution.
type Choice int

// Choices.
const (
	Tested Choice = iota // the release that the tests depend on: its OVN does not change
	Newest               // the release with the distribution's newest OVN, which changes from day to day
)

// prefix returns the beginning of the names of a choice's directories.
func (c Choice) prefix() string {
	if c == Newest {
		return "rootfs-newest-"
	}
	return "rootfs-"
}

// release is a release of a distribution with a usable OVN.
type release struct {
	suite      string
	components string
	what       string
	ahead      string // the suite from which a newer OVN and Open vSwitch are taken; "" for none

	mirror   string   // the mirror that has the release, once it is known
	packages []string // to install
}

// releases maps each distribution, by the origin in its archives, to its releases.
func releases() map[string]map[Choice]release {
	return map[string]map[Choice]release{
		"Debian": {
			Tested: {suite: "trixie", components: "main", what: "Debian 13"},
			Newest: {suite: "sid", components: "main", what: "Debian unstable", ahead: "experimental"},
		},
		"Ubuntu": {Tested: {suite: "noble", components: "main,universe", what: "Ubuntu 24.04"}},
	}
}

// Ensure returns the directory of the root filesystem below cache, and makes it first if need be. It starts over if an
// earlier attempt was interrupted. Concurrent calls make it once. One of the newest release stays as it is until its
// directory is removed.
func Ensure(ctx context.Context, cache string, choice Choice, log *progress.Log) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache of root filesystems: %w", err)
	}
	of := strings.Join(packages(choice), " ")
	if choice == Newest {
		of += preferences + inRoot
	}
	sum := sha256.Sum256([]byte(of))
	dir := filepath.Join(cache, fmt.Sprintf("%s%x", choice.prefix(), sum[:4]))
	if complete(dir) {
		return dir, nil
	}
	unlock, err := lock(ctx, filepath.Join(cache, "rootfs.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) {
		return dir, nil
	}
	if err := build(ctx, dir, choice, log); err != nil {
		return "", fmt.Errorf("making the root filesystem: %w", err)
	}
	return dir, nil
}

// complete reports whether dir was finished: it gets its name only then.
func complete(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

func build(ctx context.Context, dir string, choice Choice, log *progress.Log) error {
	r, err := source(ctx, choice)
	if err != nil {
		return err
	}
	if err := Install(ctx, log, "debootstrap"); err != nil {
		return err
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("removing an unfinished one: %w", err)
	}
	step := log.Begin("root filesystem of " + r.what + " with OVN, fetched once into " + dir)
	err = debootstrap(ctx, step, partial, r)
	if err == nil {
		err = upgrade(ctx, step, partial, r)
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(partial, "var/cache/apt/archives"))
	}
	if err == nil {
		err = os.Rename(partial, dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(partial))
	}
	return step.End(err)
}

func debootstrap(ctx context.Context, step *progress.Step, dir string, r release) error {
	err := isolated(ctx, step, "debootstrap", "--variant=minbase", "--components="+r.components,
		"--include="+strings.Join(r.packages, ","), r.suite, dir, r.mirror)
	if err != nil {
		return fmt.Errorf("taking %s from %s: %w", r.suite, r.mirror, err)
	}
	return nil
}

// isolated runs a program that installs packages in mount and PID namespaces of its own, so that its mounts and
// processes end with it.
func isolated(ctx context.Context, step *progress.Step, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Unshareflags: unix.CLONE_NEWNS,
		Pdeathsig: unix.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running %s: %w", name, err)
	}
	var last []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text := strings.TrimPrefix(lines.Text(), "I: ")
		step.Detail("%s", text)
		if last = append(last, text); len(last) > 5 {
			last = last[1:]
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running %s: %w: %s", name, err, strings.Join(last, "; "))
	}
	return nil
}

// source returns the release, from the mirror that this machine's apt uses. It updates the package lists if that never
// happened.
func source(ctx context.Context, choice Choice) (r release, err error) {
	mirror, origin, err := known(ctx)
	if err == nil && mirror == "" {
		if err = aptGet(ctx, "update", "-qq"); err == nil {
			mirror, origin, err = known(ctx)
		}
	}
	if err == nil && mirror == "" {
		err = fmt.Errorf("this machine's apt sources name no Debian or Ubuntu mirror: set %s to a Debian mirror's URL",
			MirrorVariable)
	}
	if err != nil {
		return r, err
	}
	r, ok := releases()[origin][choice]
	if !ok {
		return r, fmt.Errorf("mirrors of %s have no newer OVN than that of %s: set %s to a Debian mirror's URL",
			origin, releases()[origin][Tested].what, MirrorVariable)
	}
	r.mirror, r.packages = mirror, packages(choice)
	return r, nil
}

// known returns the mirror that apt's package lists came from, or "", and its distribution.
func known(ctx context.Context) (mirror, origin string, err error) {
	if override := os.Getenv(MirrorVariable); override != "" {
		return override, "Debian", nil
	}
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(SITE)",
		"Created-By: Packages").Output()
	if err != nil {
		return "", "", fmt.Errorf("asking apt-get for its mirror: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != f[1] { // the label of a security archive differs
			continue
		}
		if _, ok := releases()[f[0]]; ok {
			return f[2], f[0], nil
		}
	}
	return "", "", nil
}

// Version returns a package's upstream version in the system at dir, which is the directory of a root filesystem or
// "/".
func Version(ctx context.Context, dir, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "dpkg-query", "--admindir="+filepath.Join(dir, "var/lib/dpkg"), "-W", "-f",
		"${source:Upstream-Version}", name).Output()
	if err != nil {
		return "", fmt.Errorf("asking dpkg in %s for the version of %s: %w", dir, name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Install installs missing Debian packages. It starts no service.
func Install(ctx context.Context, log *progress.Log, names ...string) error {
	var missing []string
	for _, n := range names {
		out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${db:Status-Status}", n).Output()
		if err != nil || string(bytes.TrimSpace(out)) != "installed" {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	step := log.Begin("installing " + strings.Join(missing, " "))
	return step.End(install(ctx, missing))
}

func install(ctx context.Context, missing []string) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("packages %s are missing, and only root can install them", strings.Join(missing, " "))
	}
	const policy = "/usr/sbin/policy-rc.d" // invoke-rc.d(8): 101 forbids every action
	if _, err := os.Stat(policy); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return fmt.Errorf("keeping services from starting: %w", err)
		}
		defer func() { err = errors.Join(err, os.Remove(policy)) }()
	}
	if err := aptGet(ctx, "update", "-qq"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)...)
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, tail(out))
	}
	return nil
}

func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}

// lock waits for an exclusive lock on a file.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	got := make(chan error, 1)
	go func() { got <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
	select {
	case err = <-got:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), ignoreClosed(f))
	}
	return func() { f.Close() }, nil
}

func ignoreClosed(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
