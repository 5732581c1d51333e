package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// lbStage is where a switch picks a load balancer's backend (ovn-northd(8),
// "Ingress Table: LB").
const lbStage = "ls_in_lb"

// lookAgain is how long a service may need to move from one load balancer to another. A
// fault that lasts longer is a problem.
const lookAgain = time.Second

// maxClashes bounds how many matches are looked into.
const maxClashes = 50

// checkLoadBalancers looks for addresses for which this node's switch has flows of
// several load balancers: OVN uses any of them. The cause is a row that nobody should
// have written, or an ovn-northd that gave a switch flows of other switches.
func checkLoadBalancers(ctx context.Context, h *facts) Finding {
	id := names.ManagementPort(h.c.Node.Name)
	rows, err := h.askSouthbound(ctx,
		ovs.Select{Table: "Port_Binding", Columns: []string{"datapath"}, Where: ovs.Is("logical_port", id)})
	if err != nil {
		return unchecked("%v", err)
	}
	if len(rows[0]) == 0 {
		return unchecked("the Southbound database has no Port_Binding %s, which is of the node's switch", id)
	}
	datapath := rows[0][0].Text("datapath")
	wrong, err := h.clashes(ctx, datapath)
	if err == nil && len(wrong) > 0 {
		select {
		case <-ctx.Done():
			return unchecked("%v", ctx.Err())
		case <-time.After(lookAgain):
		}
		before := wrong
		wrong, err = h.clashes(ctx, datapath)
		maps.DeleteFunc(wrong, func(match, _ string) bool { return before[match] == "" })
	}
	if err != nil {
		return unchecked("%v", err)
	}
	if len(wrong) > 0 {
		var list []string
		for _, match := range slices.Sorted(maps.Keys(wrong)) {
			list = append(list, match+" leads to "+wrong[match])
		}
		return problem("several load balancers have the same address on the node's switch: %s", several(list)).fixed(
			"# ovn-northd 26.03.1 mixes up load balancers of nodes and zones, 25.03.0 and 26.09.0 do not: take another release",
			"# for now, until the next change, on the host of the active ovn-northd: "+
				"ovn-appctl -t ovn-northd inc-engine/recompute",
			"# or rows of somebody else have the address: ovn-nbctl ls-lb-list "+h.c.Node.Name)
	}
	return ok("no address is of several load balancers on the node's switch")
}

func (h *facts) askSouthbound(ctx context.Context, selects ...ovs.Select) (rows [][]ovs.Row, err error) {
	err = h.timed(ctx, func(ctx context.Context) (err error) {
		rows, err = h.t.Ask(ctx, h.sbRemote, h.sbKeys, ovs.SouthboundDatabase, selects...)
		return err
	})
	return rows, err
}

// clashes lists, by match, where flows of the switch's load balancer stage lead that
// match the same: OVN uses any of them (ovn-sb(5), Logical_Flow). Flows to the same
// backends are no clash. It reads the actions, which are large, of such flows only.
func (h *facts) clashes(ctx context.Context, datapath string) (map[string]string, error) {
	same, err := h.matchingSame(ctx, datapath)
	if err != nil || len(same) == 0 {
		return nil, err
	}
	matches := slices.Sorted(maps.Keys(same))
	matches = matches[:min(len(matches), maxClashes)]
	var selects []ovs.Select
	for _, m := range matches {
		for _, id := range same[m] {
			selects = append(selects,
				ovs.Select{Table: "Logical_Flow", Columns: []string{"actions", "external_ids"}, Where: ovs.IsRow("_uuid", id)})
		}
	}
	rows, err := h.askSouthbound(ctx, selects...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range matches {
		n := len(same[m])
		if to := leads(slices.Concat(rows[:n]...)); len(to) > 1 {
			out[m] = strings.Join(to, ", and to ")
		}
		rows = rows[n:]
	}
	return out, nil
}

// matchingSame is the UUIDs of those flows of a switch's load balancer stage that have
// the same match and priority as another, by match and priority.
func (h *facts) matchingSame(ctx context.Context, datapath string) (map[string][]string, error) {
	rows, err := h.askSouthbound(ctx,
		ovs.Select{Table: "Logical_DP_Group", Columns: []string{"_uuid"}, Where: ovs.HasRow("datapaths", datapath)},
		ovs.Select{Table: "Logical_Flow",
			Columns: []string{"_uuid", "logical_datapath", "logical_dp_group", "priority", "match"},
			Where:   ovs.HasPair("external_ids", "stage-name", lbStage)})
	if err != nil {
		return nil, err
	}
	groups := map[string]bool{}
	for _, g := range rows[0] {
		groups[g.Text("_uuid")] = true
	}
	same := map[string][]string{}
	for _, f := range rows[1] {
		if f.Text("logical_datapath") == datapath || groups[f.Text("logical_dp_group")] {
			at := fmt.Sprintf("%s (priority %d)", f.Text("match"), f.Int("priority"))
			same[at] = append(same[at], f.Text("_uuid"))
		}
	}
	maps.DeleteFunc(same, func(_ string, ids []string) bool { return len(ids) < 2 })
	return same, nil
}

// maxBackends is how much is shown of a flow's backends.
const maxBackends = 60

// leads is the backends of flows, sorted, each once, and the load balancer that they
// are of. Text before the backends may differ: with session affinity, two ports of an
// address have a flow each.
func leads(flows []ovs.Row) []string {
	of := map[string]string{}
	for _, f := range flows {
		_, to, ok := strings.Cut(f.Text("actions"), "backends=")
		if !ok {
			to = f.Text("actions")
		}
		of[to] = f.Map("external_ids")["stage-hint"]
	}
	var out []string
	for _, to := range slices.Sorted(maps.Keys(of)) {
		shown := strings.TrimSuffix(to, ");")
		if len(shown) > maxBackends {
			shown = shown[:maxBackends] + "..."
		}
		out = append(out, fmt.Sprintf("%s (load balancer %s...)", shown, of[to]))
	}
	return out
}
