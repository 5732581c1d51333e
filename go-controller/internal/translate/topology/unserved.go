package topology

import (
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// unservedPriority is above that of network policies: nobody is allowed what no
// load balancer takes.
const unservedPriority = 2001

// unserved drops, on the switch itself, what is for a ClusterIP and was not
// given a backend. The cluster router would drop it, too (Cluster.policies), but
// by then connection tracking knows the flow, with the ClusterIP as its end: a
// UDP client that goes on sending from one port would never get the backend
// that comes later.
func (r nodeRows) unserved() []nb.Row {
	ranges := r.state.ServiceRanges()
	if len(ranges) == 0 {
		return nil
	}
	var either []string
	for _, p := range ranges {
		either = append(either, destination(p))
	}
	return []nb.Row{r.schema.NewRow(r.key(nbdb.ACLTable, names.RoleUnserved), &nbdb.ACL{
		UUID: r.uuid(nbdb.ACLTable, names.RoleUnserved), Priority: unservedPriority, Direction: nbdb.ACLDirectionFromLport,
		Match: strings.Join(either, " || "), Action: nbdb.ACLActionDrop, Options: map[string]string{"apply-after-lb": "true"},
	}, nb.Slot{In: nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: r.uuid(nbdb.LogicalSwitchTable, names.RoleSwitch)}, Column: "acls"})}
}
