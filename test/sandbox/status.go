package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// MemberStatus is the state of a machine.
type MemberStatus struct {
	Name     string
	PID      int // of its Init, 0 if the machine is gone
	Services []member.ServiceStatus
	Leads    []string // those of several control machines' services that work here while others stand by
	Ready    string   // of its Kubernetes Node: "Ready", or why it is not; empty for other machines
}

// Status returns the state of every machine. A question that fails is part of the state, and no error.
func (c *Cluster) Status(ctx context.Context) []MemberStatus {
	ready := c.ready(ctx)
	var all []MemberStatus
	for _, m := range c.Members() {
		s := MemberStatus{Name: m.Spec.Name, PID: m.PID(), Ready: ready[m.Spec.Name]}
		if services, err := m.Services(ctx); s.PID != 0 && err == nil {
			s.Services = services
		}
		if s.Ready == "" && slices.ContainsFunc(c.Nodes, func(n *node.Node) bool { return n.Member == m }) {
			s.Ready = "unknown: the API server doesn't tell"
		}
		all = append(all, s)
	}
	if c.Options.HA {
		c.leaders(ctx, all)
	}
	return all
}

// leaders records who leads. The control machines are the first in all.
func (c *Cluster) leaders(ctx context.Context, all []MemberStatus) {
	for i, m := range c.Controls() {
		for _, s := range all[i].Services {
			if m.Leads(ctx, s.Name) {
				all[i].Leads = append(all[i].Leads, s.Name)
			}
		}
	}
}

func (c *Cluster) ready(ctx context.Context) map[string]string {
	client, err := c.Control.Client()
	if err != nil || c.Control.PID() == 0 {
		return nil
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	ready := map[string]string{}
	for _, n := range list.Items {
		ready[n.Name] = "Ready"
		if why := notReady([]corev1.Node{n}, 1); len(why) > 0 {
			ready[n.Name] = "not Ready: " + strings.Join(why, "; ")
		}
	}
	return ready
}

// Healthy reports whether every machine and service runs and every node is Ready.
func Healthy(all []MemberStatus) bool {
	for _, m := range all {
		if m.PID == 0 || (m.Ready != "" && m.Ready != "Ready") {
			return false
		}
		for _, s := range m.Services {
			if s.PID == 0 {
				return false
			}
		}
	}
	return true
}

// String returns a few lines for people.
func (s MemberStatus) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s", s.Name)
	if s.PID == 0 {
		return b.String() + " gone"
	}
	fmt.Fprintf(&b, " process %d", s.PID)
	if s.Ready != "" {
		fmt.Fprintf(&b, ", %s", s.Ready)
	}
	for _, v := range s.Services {
		state := fmt.Sprintf("running, process %d in it", v.PID)
		if v.PID == 0 {
			state = "ENDED: " + v.Exit
		}
		if slices.Contains(s.Leads, v.Name) {
			state += ", leads"
		}
		fmt.Fprintf(&b, "\n  %-16s %s", v.Name, state)
	}
	return b.String()
}
