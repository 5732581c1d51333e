package sandbox

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// Component finds the machine and the service of a component: "master" on the control machine, "n1/kubelet" on node n1.
func (c *Cluster) Component(name string) (*member.Member, string, error) {
	machine, service, ok := strings.Cut(name, "/")
	if !ok {
		return c.Control.Member, name, nil
	}
	for _, m := range c.Members() {
		if m.Spec.Name == machine {
			return m, service, nil
		}
	}
	return nil, "", fmt.Errorf("component %q: there is no machine %q", name, machine)
}

// active lists the control machines with an ovn-northd and a master: of several, one works and one stands by.
func (c *Cluster) active() []*control.Control { return c.Controls()[:min(2, len(c.Standby)+1)] }

// Leader finds the control machine whose database (control.NB, control.SB) leads, whose ovn-northd (control.Northd) is
// active, or whose master (control.Master) holds the Lease. It is nil if there is none at the moment.
func (c *Cluster) Leader(ctx context.Context, service string) *control.Control {
	for _, m := range c.Controls() {
		if m.Leads(ctx, service) {
			return m
		}
	}
	return nil
}

// Restart ends a component with a signal and starts it again. It does not wait until the component is ready. The
// masters of a chart are pods, which are replaced: the kubelet waits longer each time before it starts a container
// again. It does start the chart's other containers.
func (c *Cluster) Restart(ctx context.Context, component string, signal syscall.Signal) error {
	if c.RunsChart() && component == control.Master {
		if signal == syscall.SIGKILL { // a master whose pod is deleted would give its Lease up
			if err := c.signal(ctx, component, signal); err != nil {
				return err
			}
		}
		_, err := run(c.Kubectl(ctx, "--namespace", Namespace, "delete", "pod", "--selector", "app=ovnkube-master"))
		return err
	}
	if _, ok := c.part(component); ok {
		return c.signal(ctx, component, signal)
	}
	m, service, err := c.Component(component)
	if err != nil {
		return err
	}
	return m.RestartService(ctx, service, signal)
}

// Metrics fetches the Prometheus metrics of the master that works ("master", or empty) or of a node's agent ("n1").
func (c *Cluster) Metrics(ctx context.Context, of string) (string, error) {
	if of == "" || of == control.Master {
		if c.RunsChart() {
			return c.Nodes[0].Get(ctx, "http://"+control.MasterMetrics+"/metrics")
		}
		from := c.Control
		if leader := c.Leader(ctx, control.Master); leader != nil && c.Options.HA {
			from = leader
		}
		return from.Get(ctx, "http://"+control.MasterMetrics+"/metrics")
	}
	n, err := c.Node(of)
	if err != nil {
		return "", err
	}
	return n.Get(ctx, "http://"+node.AgentMetrics+"/metrics")
}

// Metric returns the sum over all labels of one of the master's metrics, 0 if it does not exist.
func (c *Cluster) Metric(ctx context.Context, name string) (float64, error) {
	text, err := c.Metrics(ctx, "")
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		base, _, _ := strings.Cut(series, "{")
		if !ok || base != name {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(value, &v); err != nil {
			return 0, fmt.Errorf("reading metric %q: %w", line, err)
		}
		sum += v
	}
	return sum, nil
}
