package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// lbStage is where a switch picks a load balancer's backend (ovn-northd(8),
// "Ingress Table: LB").
const lbStage = "ls_in_lb"

// checkLoadBalancers looks for addresses of which this node's switch has flows
// of several load balancers: OVN takes either. Between them are rows that
// nobody should have written, or an ovn-northd that gave flows to a switch that
// they are not for.
func checkLoadBalancers(ctx context.Context, h *chart) Finding {
	if h.sbErr != nil {
		return noSouthbound()
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	id := names.ManagementPort(h.c.Node.Name)
	rows, err := h.t.Databases.Ask(ctx, h.sbRemote, h.sbKeys, ovs.SouthboundDatabase,
		ovs.Select{Table: "Port_Binding", Columns: []string{"datapath"}, Where: ovs.Is("logical_port", id)})
	if err != nil {
		return unchecked("%v", err)
	}
	if len(rows[0]) == 0 {
		return unchecked("the Southbound database has no Port_Binding %s, which is of the node's switch", id)
	}
	flows, err := h.switchFlows(ctx, rows[0][0].Text("datapath"), lbStage)
	if err != nil {
		return unchecked("%v", err)
	}
	actions := map[match][]string{}
	for _, f := range flows {
		of := match{f.Int("priority"), f.Text("match")}
		actions[of] = append(actions[of], f.Text("actions"))
	}
	var wrong []string
	for _, of := range slices.SortedFunc(maps.Keys(actions), match.compare) {
		if found := actions[of]; len(found) > 1 {
			slices.Sort(found)
			wrong = append(wrong, fmt.Sprintf("%d flows of priority %d match %s: %q", len(found), of.priority, of.text, found))
		}
	}
	if len(wrong) > 0 {
		return problem("several load balancers have the same address on the node's switch: %s", several(wrong)).fixed(
			"# where ovn-northd runs, have it begin anew: ovn-appctl -t ovn-northd inc-engine/recompute",
			"# ovn-northd 26.03.1 mixes up load balancers of nodes and zones, 25.03.0 and 26.09.0 do not: take another release",
			"# or rows of somebody else have the address: ovn-nbctl ls-lb-list "+h.c.Node.Name)
	}
	return ok("each address is of one load balancer on the node's switch")
}

// match is what a logical flow matches: where two have the same, either is
// taken (ovn-sb(5), Logical_Flow).
type match struct {
	priority int
	text     string
}

func (m match) compare(o match) int {
	return cmp.Or(o.priority-m.priority, cmp.Compare(m.text, o.text))
}

// switchFlows are the logical flows of a datapath in one stage.
func (h *chart) switchFlows(ctx context.Context, datapath, stage string) ([]ovs.Row, error) {
	rows, err := h.t.Databases.Ask(ctx, h.sbRemote, h.sbKeys, ovs.SouthboundDatabase,
		ovs.Select{Table: "Logical_DP_Group", Columns: []string{"_uuid"}, Where: ovs.HasRow("datapaths", datapath)},
		ovs.Select{Table: "Logical_Flow", Columns: []string{"logical_datapath", "logical_dp_group", "priority", "match", "actions"},
			Where: ovs.HasPair("external_ids", "stage-name", stage)})
	if err != nil {
		return nil, err
	}
	groups := map[string]bool{}
	for _, g := range rows[0] {
		groups[g.Text("_uuid")] = true
	}
	return slices.DeleteFunc(rows[1], func(f ovs.Row) bool {
		return f.Text("logical_datapath") != datapath && !groups[f.Text("logical_dp_group")]
	}), nil
}
