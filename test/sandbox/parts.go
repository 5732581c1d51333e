package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// part is a component that is a container of the chart.
type part struct {
	node           *node.Node
	app, container string
	process        string // the beginning of the process's arguments, for grep
}

// part finds a component in the chart: "master", "northd", "nb" and "sb" on the first node, "n1/ovnkube-node" and
// "n1/ovn-controller".
func (c *Cluster) part(component string) (part, bool) {
	if !c.RunsChart() {
		return part{}, false
	}
	machine, service, ok := strings.Cut(component, "/")
	if !ok {
		machine, service = c.Nodes[0].Spec.Name, component
	}
	p, known := map[string]part{
		control.Master:  {nil, "ovnkube-master", "master", `^(\S*/)?ovnkube\x00master\x00`},
		control.Northd:  {nil, "ovn-db", "northd", `^(\S*/)?ovn-northd\x00`},
		control.NB:      {nil, "ovn-db", "nb", `^(\S*/)?ovsdb-server\x00[^\n]*ovnnb_db`},
		control.SB:      {nil, "ovn-db", "sb", `^(\S*/)?ovsdb-server\x00[^\n]*ovnsb_db`},
		node.Agent:      {nil, "ovnkube-node", "agent", `^(\S*/)?ovnkube\x00node\x00`},
		node.Controller: {nil, "ovnkube-node", "ovn-controller", `^(\S*/)?ovn-controller\x00`},
	}[service]
	n, err := c.Node(machine)
	p.node = n
	return p, known && err == nil && ok == (p.app == "ovnkube-node")
}

// PID is the number of a component's process in its machine's PID namespace, or "" if it does not run. It works for
// containers of the chart, too.
func (c *Cluster) PID(ctx context.Context, component string) (string, error) {
	if p, ok := c.part(component); ok {
		out, err := p.node.Run(ctx, "sh", "-c", `grep -lsaP "$1" /proc/[0-9]*/cmdline | cut -d/ -f3 | head -n1`, "sh",
			p.process)
		return strings.TrimSpace(out), err
	}
	m, service, err := c.Component(component)
	if err != nil {
		return "", err
	}
	all, err := m.Services(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.Name == service && s.PID != 0 {
			return fmt.Sprint(s.PID), nil
		}
	}
	return "", nil
}

// Halt has a component answer nobody, until Resume. A process of the host is killed. That of a container, which the
// kubelet would start again, gets SIGSTOP. Its liveness probe ends it after more than two minutes.
func (c *Cluster) Halt(ctx context.Context, component string) error {
	if _, ok := c.part(component); ok {
		return c.signal(ctx, component, syscall.SIGSTOP)
	}
	m, service, err := c.Component(component)
	if err != nil {
		return err
	}
	return m.StopService(ctx, service, syscall.SIGKILL)
}

// Resume starts a component that Halt has ended, or has it go on. It does not wait until the component is ready.
func (c *Cluster) Resume(ctx context.Context, component string) error {
	if _, ok := c.part(component); ok {
		return c.signal(ctx, component, syscall.SIGCONT)
	}
	return c.Restart(ctx, component, syscall.SIGTERM)
}

// signal sends a signal to the process of a container. If the process ends, the kubelet starts it again.
func (c *Cluster) signal(ctx context.Context, component string, which syscall.Signal) error {
	pid, err := c.PID(ctx, component)
	if err != nil {
		return err
	}
	p, _ := c.part(component)
	_, err = p.node.Run(ctx, "kill", "-s", strings.TrimPrefix(unix.SignalName(which), "SIG"), pid)
	return err
}

// LogOf is a command that prints the log of a component that is a container of the chart.
func (c *Cluster) LogOf(ctx context.Context, component string, follow bool) (cmd *exec.Cmd, ok bool, err error) {
	p, ok := c.part(component)
	if !ok {
		return nil, false, nil
	}
	pod, err := run(c.Kubectl(ctx, "--namespace", Namespace, "get", "pods", "--selector", "app="+p.app, "--field-selector",
		"spec.nodeName="+p.node.Spec.Name, "--output", "name"))
	if err != nil {
		return nil, true, err
	}
	return c.Kubectl(ctx, "--namespace", Namespace, "logs", strings.TrimSpace(pod), "--container", p.container,
		fmt.Sprintf("--follow=%t", follow)), true, nil
}
