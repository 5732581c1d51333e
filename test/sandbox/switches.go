package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/node"
)

// recirculations counts packets that passed more tables than the userspace datapath allows (coverage counters,
// ovs-appctl(8)).
const recirculations = "datapath_drop_recirc_error"

// checkLimit is how long a check waits for answers: a program that crashed or hangs gives none.
const checkLimit = time.Minute

// CheckSwitches returns an error if observations in the sandbox may be wrong: a node's datapath lost packets, a program
// crashed, or ovn-northd gave a node flows of another node.
func (c *Cluster) CheckSwitches(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit,
		fmt.Errorf("the nodes' switches and the Southbound database did not all answer within %v", checkLimit))
	defer cancel()
	errs := []error{c.checkCrashed(ctx)}
	if c.Options.SwitchPods && c.withoutSwitches(ctx) {
		return errs[0]
	}
	for _, n := range c.Nodes {
		have, err := n.Run(ctx, "ovs-appctl", "coverage/read-counter", recirculations)
		if err == nil && strings.TrimSpace(have) != "0" {
			err = fmt.Errorf("node %s: counter %s is %s, want 0", n.Spec.Name, recirculations, strings.TrimSpace(have))
		}
		errs = append(errs, err)
		if c.Options.SwitchPods {
			continue // what ovs-vswitchd said is in the logs of pods, also of former ones
		}
		log := filepath.Join(n.Spec.LogDir(), node.VSwitchd+".log")
		text, err := os.ReadFile(log)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading what ovs-vswitchd said: %w", err))
		}
		for line := range strings.Lines(string(text)) {
			// The log lines of its monitor, and of a failed assertion (ovs-vswitchd(8)).
			if strings.Contains(line, "|EMER|") || strings.Contains(line, "died") {
				errs = append(errs, fmt.Errorf("node %s: ovs-vswitchd crashed: %s", n.Spec.Name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(append(errs, c.checkFlows(ctx))...)
}

// withoutSwitches tells whether no node has Open vSwitch, because the chart that brought it has been removed.
func (c *Cluster) withoutSwitches(ctx context.Context) bool {
	return !slices.ContainsFunc(c.Nodes, func(n *node.Node) bool {
		_, err := n.Run(ctx, "test", "-e", "/etc/openvswitch/conf.db")
		return err == nil
	})
}

// checkFlows looks for switches with several load balancers for the same address. While a test's objects are deleted,
// there may be two for a moment.
func (c *Cluster) checkFlows(ctx context.Context) error {
	flows, err := c.SBCtl(ctx, "lflow-list")
	if err != nil {
		return err
	}
	before := ambiguous(flows)
	if len(before) == 0 {
		return nil
	}
	if _, err = c.NBCtl(ctx, "--wait=sb", "sync"); err == nil {
		flows, err = c.SBCtl(ctx, "lflow-list")
	}
	if err != nil {
		return err
	}
	still := ambiguous(flows)
	maps.DeleteFunc(still, func(flow, _ string) bool { return before[flow] == "" })
	if len(still) == 0 {
		return nil
	}
	flow := slices.Sorted(maps.Keys(still))[0]
	return fmt.Errorf("ovn-northd made several flows for %d addresses of load balancers, such as %s: %s", len(still), flow,
		still[flow])
}

// ambiguous returns the backends of a switch's load balancer flows that match the same packets and lead to different
// backends: OVN may use any of them. flows has the format of `ovn-sbctl lflow-list`. Two service ports with the same
// address have a flow each for session affinity. These differ before the backends, and are not ambiguous.
func ambiguous(flows string) map[string]string {
	var datapath string
	first, out := map[string]string{}, map[string]string{} // first is the backends of the flow that comes first
	for line := range strings.Lines(flows) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Datapath: ") {
			datapath = line
		}
		flow, actions, ok := strings.Cut(line, ", action=")
		if !ok || !strings.Contains(flow, "(ls_in_lb ") {
			continue
		}
		if _, backends, ok := strings.Cut(actions, "backends="); ok {
			actions = backends
		}
		flow = datapath + " " + flow
		if other, twice := first[flow]; !twice {
			first[flow] = actions
		} else if other != actions {
			out[flow] = fmt.Sprintf("%.200s and %.200s", other, actions)
		}
	}
	return out
}
