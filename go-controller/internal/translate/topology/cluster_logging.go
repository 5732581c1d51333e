package topology

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// logMeter limits how many lines an ACL logs. It is fair: each ACL has the whole rate on each node, so that one that
// logs much hides no line of another (ovn-nb(5), Meter fair). The meter stays while ACLs that name it wait for their
// removal: an ACL whose meter is gone logs without a limit.
func logMeter(m translate.Maker, s *cluster.State) []nb.Row {
	if s.Config.ACLLogRate <= 0 || !index.LoggingIn(s).Any() && !s.Held.Logged {
		return nil
	}
	fair := true
	return []nb.Row{
		m.Row(names.RoleLogMeter, &nbdb.Meter{Name: names.LogMeter, Unit: nbdb.MeterUnitPktps, Fair: &fair,
			Bands: []string{m.UUID(nbdb.MeterBandTable, names.RoleLogBand)}}),
		m.Row(names.RoleLogBand, &nbdb.MeterBand{Action: nbdb.MeterBandActionDrop, Rate: s.Config.ACLLogRate}),
	}
}
