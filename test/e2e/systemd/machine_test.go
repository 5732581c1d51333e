package systemd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/cgroup"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// machine is a booted systemd.
type machine struct {
	init string // its process, on the host
}

// anAnswer is how long systemctl may take for an answer. A manager that reboots never answers what it was asked before.
const anAnswer = 10 * time.Second

// boot boots a machine with the name and the addresses of a node. It has the packages in a directory in /root. The
// machine ends with the test.
func boot(t *testing.T, c *sandbox.Cluster, n *node.Node, root, dir string) *machine {
	t.Helper()
	fd, err := os.Open(controlGroup(t))
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	output, err := os.Create(filepath.Join(dir, "boot.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	m := &machine{}
	script, err := filepath.Abs("testdata/boot.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup",
		"bash", script, root, dir, n.Spec.Name, c.Options.State())
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd()), Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid, err := strconv.Atoi(m.init); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // with it all of the machine's processes, and its mounts
		} else {
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait() // unshare waits for that process
	})
	machines.Within(t, time.Minute, "systemd has booted", func(ctx context.Context) string {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		said, _ := os.ReadFile(output.Name())
		if m.init = strings.TrimSpace(string(children)); err != nil || m.init == "" {
			return fmt.Sprintf("no process yet (%v): %s", err, said)
		}
		if name, err := os.ReadFile("/proc/" + m.init + "/comm"); err != nil || string(name) != "systemd\n" {
			return fmt.Sprintf("process %s is %q (%v): %s", m.init, name, err, said)
		}
		return m.running(ctx)
	})
	m.connect(t, n)
	return m
}

// connect plugs the machine into the switch of a node, whose addresses it takes.
func (m *machine) connect(t *testing.T, n *node.Node) {
	t.Helper()
	const plug = "machine"
	out, err := exec.CommandContext(t.Context(), "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", n.PID()), "ip", "link",
		"add", plug, "type", "veth", "peer", "name", "eth0", "netns", m.init).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	machines.Run(t, n, "ovs-vsctl", "add-port", node.PhysicalBridge, plug)
	machines.Run(t, n, "ip", "link", "set", plug, "up")
	machines.Run(t, n, "ip", "address", "flush", "dev", node.PhysicalBridge)
	m.does(t, "ip link set eth0 up; ethtool -K eth0 tx off") // a switch in userspace does not fill in checksums
	for _, a := range n.Config.Addrs {
		m.does(t, fmt.Sprintf("ip address add %s dev eth0 nodad", a))
	}
}

// running says why systemd has not booted yet; "" when it has, and no unit has failed.
func (m *machine) running(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, anAnswer)
	defer cancel()
	state, err := m.try(ctx, "systemctl is-system-running")
	if strings.TrimSpace(state) == "running" {
		return ""
	}
	failed, _ := m.try(ctx, "systemctl --failed --no-legend --plain")
	return fmt.Sprintf("%s (%v) %s", state, err, failed)
}

// try runs a script in the machine, and returns all that it printed.
func (m *machine) try(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "--target", m.init, "--mount", "--pid", "--net", "--uts", "--ipc",
		"--cgroup", "--root", "--wd", "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs a script that must succeed.
func (m *machine) does(t *testing.T, script string) string {
	t.Helper()
	out, err := m.try(t.Context(), script)
	if err != nil {
		t.Fatalf("# %s\n%s%v\n%s", script, out, err, m.journal(t.Context()))
	}
	return strings.TrimSpace(out)
}

// says waits until the last line that a script prints is this one.
func (m *machine) says(t *testing.T, want, script string) {
	t.Helper()
	machines.Within(t, time.Minute, script+" prints "+want, func(ctx context.Context) string {
		out, err := m.try(ctx, script)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if lines[len(lines)-1] == want {
			return ""
		}
		return fmt.Sprintf("%s%v\n%s", out, err, m.journal(ctx))
	})
}

// ready waits until a daemon on its default address is ready.
func (m *machine) ready(t *testing.T, ports ...int) {
	t.Helper()
	for _, port := range ports {
		m.says(t, "ok", fmt.Sprintf("curl -s 127.0.0.1:%d/readyz || true", port))
	}
}

// show is what systemd says of a service.
func (m *machine) show(ctx context.Context, property, service string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, anAnswer)
	defer cancel()
	out, err := m.try(ctx, "systemctl show --property "+property+" --value "+service)
	return strings.TrimSpace(out), err
}

// pid is the process of a service.
func (m *machine) pid(t *testing.T, service string) string {
	t.Helper()
	out, err := m.show(t.Context(), "MainPID", service)
	if err != nil || out == "0" {
		t.Fatalf("%s has process %q: %v", service, out, err)
	}
	return out
}

// journal is what the journal has of our services at its end.
func (m *machine) journal(ctx context.Context) string {
	out, _ := m.try(context.WithoutCancel(ctx), "journalctl --no-pager --lines 30 --output cat --unit 'ovnkube*'; "+
		"tail -n 15 /var/log/openvswitch/ovs-vswitchd.log /var/log/ovn/ovn-controller.log")
	return "the journal's end:\n" + out
}

// controlGroup makes a control group until the test ends. systemd needs no controllers in it.
func controlGroup(t *testing.T) (dir string) {
	t.Helper()
	const name = "northbound-systemd"
	remove := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		return cgroup.Remove(ctx, name)
	}
	if err := remove(); err != nil { // that of a test that was killed
		t.Fatal(err)
	}
	dir, err := cgroup.MakeV2(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return dir
}
