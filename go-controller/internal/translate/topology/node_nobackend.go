package topology

import (
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// noBackend drops packets to a ClusterIP that got no backend, already at the node's switch. The cluster router would
// drop them, too (policies). But by then connection tracking has an entry with the ClusterIP as the destination: a UDP
// client that keeps its source port would never get a backend that is added later.
func (r nodeRows) noBackend() []nb.Row {
	var either []string
	for _, p := range r.state.ServiceRanges() {
		either = append(either, destination(p))
	}
	if len(either) == 0 {
		return nil
	}
	return []nb.Row{r.Row(names.RoleUnserved, &nbdb.ACL{
		Priority: names.ACLUnserved, Direction: nbdb.ACLDirectionFromLport, Match: strings.Join(either, " || "),
		Action: nbdb.ACLActionDrop, Options: map[string]string{"apply-after-lb": "true"},
	}, r.inSwitch("acls"))}
}
