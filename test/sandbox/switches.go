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

// recirculations counts packets that went through more tables than the
// userspace datapath allows (coverage counters, ovs-appctl(8)).
const recirculations = "datapath_drop_recirc_error"

// switchesLimit is how long CheckSwitches waits for answers: a switch that crashed
// may give none.
const switchesLimit = time.Minute

// CheckSwitches is an error when what was seen in the sandbox may be wrong since a
// node's datapath lost packets or crashed, or ovn-northd gave a node flows that
// are not for it.
func (c *Cluster) CheckSwitches(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, switchesLimit, fmt.Errorf("the nodes' switches and the Southbound database did not all answer within %v", switchesLimit))
	defer cancel()
	var errs []error
	for _, n := range c.Nodes {
		have, err := n.Run(ctx, "ovs-appctl", "coverage/read-counter", recirculations)
		if err == nil && strings.TrimSpace(have) != "0" {
			err = fmt.Errorf("node %s: counter %s is %s, want 0", n.Spec.Name, recirculations, strings.TrimSpace(have))
		}
		errs = append(errs, err)
		log := filepath.Join(n.Spec.LogDir(), node.VSwitchd+".log")
		text, err := os.ReadFile(log)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading what ovs-vswitchd said: %w", err))
		}
		for line := range strings.Lines(string(text)) {
			// Of its own monitor, and of a failed assertion (ovs-vswitchd(8)).
			if strings.Contains(line, "|EMER|") || strings.Contains(line, "died") {
				errs = append(errs, fmt.Errorf("node %s: ovs-vswitchd crashed: %s", n.Spec.Name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(append(errs, c.checkFlows(ctx))...)
}

// checkFlows looks for switches with several load balancers of one address. While
// objects of a test go, there may be two for a moment.
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
	return fmt.Errorf("ovn-northd made several flows for %d addresses of load balancers, such as %s: %s", len(still), flow, still[flow])
}

// ambiguous is where flows of a switch lead, in the stage of load balancers,
// that match the same and lead to other backends, by all that is before the
// actions: OVN takes any of them. flows are as `ovn-sbctl lflow-list` prints them. Two ports of one address have a flow each
// for a client that is to keep its backend; these differ before the backends only.
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
