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

// Restart ends a component with a signal and starts it again. It does not wait until the component is ready.
func (c *Cluster) Restart(ctx context.Context, component string, signal syscall.Signal) error {
	m, service, err := c.Component(component)
	if err != nil {
		return err
	}
	return m.RestartService(ctx, service, signal)
}

// Metrics fetches the Prometheus metrics of the master ("master", or empty) or of a node's agent ("n1").
func (c *Cluster) Metrics(ctx context.Context, of string) (string, error) {
	if of == "" || of == control.Master {
		return c.Control.Get(ctx, "http://"+control.MasterMetrics+"/metrics")
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
