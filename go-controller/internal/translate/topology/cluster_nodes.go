package topology

import (
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// allNodes is the ACLs that are the same on all nodes' switches, and the port group that lists them: there is one row
// for all nodes, and a node that joins adds none.
func allNodes(m translate.Maker, s *cluster.State) []nb.Row {
	rows := []nb.Row{
		m.Row(names.RoleMcastRouters, &nbdb.PortGroup{Name: names.MulticastRouters}),
		spoofGuard(m, translate.OnAllNodes("acls")),
	}
	rows = append(rows, noBackend(m, s)...)
	return append(rows, multicastRows(m)...)
}

// noBackend drops packets to a ClusterIP that got no backend, already at the node's switch. The cluster router would
// drop them, too (policies). But by then connection tracking has an entry with the ClusterIP as the destination: a UDP
// client that keeps its source port would never get a backend that is added later.
func noBackend(m translate.Maker, s *cluster.State) []nb.Row {
	var either []string
	for _, p := range s.ServiceRanges() {
		either = append(either, translate.Destination(p))
	}
	if len(either) == 0 {
		return nil
	}
	return []nb.Row{m.Row(names.RoleUnserved, &nbdb.ACL{
		Priority: names.ACLUnserved, Direction: nbdb.ACLDirectionFromLport, Match: strings.Join(either, " || "),
		Action: nbdb.ACLActionDrop, Options: map[string]string{"apply-after-lb": "true"},
	}, translate.OnAllNodes("acls"))}
}
