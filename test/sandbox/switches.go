package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	ctx, cancel := context.WithTimeoutCause(ctx, switchesLimit, fmt.Errorf("the nodes' switches did not all answer within %v", switchesLimit))
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
	flows, err := c.SBCtl(ctx, "lflow-list")
	return errors.Join(append(errs, err, ambiguous(flows))...)
}

// ambiguous is an error when a switch has several flows in the stage of load
// balancers that match the same: OVN takes any of them. flows are as
// `ovn-sbctl lflow-list` prints them.
func ambiguous(flows string) error {
	var datapath string
	actions := map[string]string{} // by all that is before them
	var errs []error
	for line := range strings.Lines(flows) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Datapath: ") {
			datapath = line
		}
		flow, action, ok := strings.Cut(line, ", action=")
		if !ok || !strings.Contains(flow, "(ls_in_lb ") {
			continue
		}
		flow = datapath + " " + flow
		if other, twice := actions[flow]; twice {
			errs = append(errs, fmt.Errorf("ovn-northd made two flows %s: %s and %s", flow, other, action))
		}
		actions[flow] = action
	}
	return errors.Join(errs...)
}
