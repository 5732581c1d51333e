package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// CheckFollowed returns an error if ovn-northd or a node's ovn-controller does not follow the Northbound database
// within ten seconds. The error tells how far each has come, and what those that could be at fault have said last.
func (c *Cluster) CheckFollowed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("OVN did not answer within %v", checkLimit))
	defer cancel()
	_, err := c.NBCtl(ctx, "--wait=hv", "--timeout=10", "sync")
	if err == nil || c.RunsChart() { // there, what daemons say is in the logs of pods
		return err
	}
	all := []string{err.Error()}
	for _, m := range c.Members() {
		if err := m.Ended(ctx); err != nil {
			all = append(all, err.Error())
		}
	}
	say := func(what, text string, err error) {
		all = append(all, fmt.Sprintf("%s: %s", what, strings.Join(strings.Fields(text), " ")))
		if err != nil {
			all = append(all, err.Error())
		}
	}
	northd, err := c.NBCtl(ctx, "get", "nb_global", ".", "nb_cfg", "sb_cfg", "hv_cfg")
	say("nb_cfg, sb_cfg and hv_cfg", northd, err)
	chassis, err := c.SBCtl(ctx, "--format=csv", "--no-headings", "--columns=name,nb_cfg", "list", "chassis_private")
	say("nodes", chassis, err)
	status, err := c.Control.Run(ctx, "ovs-appctl", "--timeout=2", "-t", "/run/ovn/northd.ctl", "status")
	say(control.Northd, status, err)
	all = append(all, c.Control.LogTail(control.Northd))
	for _, n := range c.Nodes {
		state, err := n.Run(ctx, "ovn-appctl", "--timeout=2", "-t", "ovn-controller", "debug/status")
		say(n.Spec.Name+"'s ovn-controller", state, err)
		all = append(all, n.LogTail(node.Controller), n.LogTail(node.VSwitchd))
	}
	return fmt.Errorf("not all of OVN follows the Northbound database: %s", strings.Join(all, "\n"))
}

// checkCrashed returns an error with every service of a machine that has ended by a fault of its own.
func (c *Cluster) checkCrashed(ctx context.Context) error {
	var errs []error
	for _, m := range c.Members() {
		all, err := m.Services(ctx)
		errs = append(errs, err)
		for _, s := range all {
			if s.Crashed() {
				errs = append(errs, fmt.Errorf("%s/%s crashed: %s: %s", m.Spec.Name, s.Name, s.Exit, m.LogTail(s.Name)))
			}
		}
	}
	return errors.Join(errs...)
}
