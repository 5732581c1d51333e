package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// secondLook is how long a pod that starts has for its flows.
const secondLook = 2 * time.Second

// checkPodInterfaces looks for interfaces of pods, in any network, that pass no packets: Open vSwitch has not opened
// them, or OVN has not made their flows. Those of pods that start at this moment are seen twice.
func checkPodInterfaces(ctx context.Context, h *facts) Finding {
	all, bad := ofPods(h.interfaces)
	if len(bad) > 0 {
		select {
		case <-time.After(secondLook):
		case <-ctx.Done():
			return unchecked("%v", context.Cause(ctx))
		}
		again := *h
		if err := h.timed(ctx, again.readOVS); err != nil {
			return unchecked("%v", err)
		}
		before := bad
		all, bad = ofPods(again.interfaces)
		bad = slices.DeleteFunc(bad, func(i ovs.Row) bool {
			_, was := named(before, i.Text("name"))
			return !was
		})
	}
	var f faults
	explained := false
	for _, i := range bad {
		name, id := i.Text("name"), i.Map("external_ids")[names.IfaceID]
		if i.Int("ofport") <= 0 {
			f.add(fmt.Sprintf("ovs-vswitchd has not opened interface %s of port %s: %q", name, id, i.Text("error")),
				"ovs-vsctl list interface "+name+"  # its error; a pod that is made anew gets another")
			continue
		}
		message := fmt.Sprintf("the flows of port %s (interface %s) are not installed", id, name)
		if !explained { // each takes a while
			explained = true
			message += ": " + h.whyNotInstalled(ctx, id)
		}
		f.add(message,
			"ovn-nbctl list logical_switch_port "+id+"  # is it there, with this node as requested-chassis?")
	}
	return f.finding("interfaces of pods: %d, all with their flows", all)
}

// ofPods counts the interfaces of pods, and lists those that pass no packets.
func ofPods(interfaces []ovs.Row) (all int, bad []ovs.Row) {
	for _, i := range interfaces {
		ids := i.Map("external_ids")
		if ids[names.IfaceSandbox] == "" {
			continue
		}
		if all++; i.Int("ofport") <= 0 || ids[names.IfaceInstalled] != "true" {
			bad = append(bad, i)
		}
	}
	return all, bad
}
