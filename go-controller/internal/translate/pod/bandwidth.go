package pod

import (
	"fmt"
	"math"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// limitPriority is that of the rows that limit bandwidth. Of the rows that
// match a packet OVN uses the one of the highest priority, for its bandwidth
// and, apart from that, for its DSCP.
const limitPriority = 1000

// In kilobits: the highest rate, half of what the column holds (ovn-nb(5),
// QoS), because datapaths add the burst to it in 32 bits; and the least burst.
// A packet that is longer than the burst never passes; the longest that a pod
// hands to Open vSwitch, with its segmentation left for later, has 64 KiB.
const (
	mostKilobits = math.MaxUint32 / 2
	leastBurst   = (64<<10)*8/1000 + 1
)

// limits is a row for each direction in which the pod has a limit. The switch's
// view is the other way round: what a pod sends enters by its port.
func (t Translator) limits(o nb.Owner, p *cluster.Pod, sw nb.Ref) []nb.Row {
	port := names.LogicalPort(p.Name.Namespace, p.Name.Name)
	var out []nb.Row
	add := func(bits uint64, role string, direction nbdb.QoSDirection, field string) {
		if bits == 0 {
			return
		}
		out = append(out, t.Schema.NewRow(
			nb.Key{Table: nbdb.QoSTable, Owner: o, Role: role},
			&nbdb.QoS{
				UUID:     names.RowUUID(nbdb.QoSTable, o.Kind, o.Name, role, p.UID),
				Priority: limitPriority, Direction: direction,
				Match:     fmt.Sprintf("%s == %q", field, port),
				Bandwidth: bandwidth(bits),
			},
			nb.Slot{In: sw, Column: "qos_rules"}))
	}
	add(p.Bandwidth.Ingress, names.RoleIngressLimit, nbdb.QoSDirectionToLport, "outport")
	add(p.Bandwidth.Egress, names.RoleEgressLimit, nbdb.QoSDirectionFromLport, "inport")
	return out
}

// bandwidth is the value of the column for a limit in bits per second. The
// limit polices: what is too much is dropped, not delayed. A burst of 80 % of
// the rate lets TCP come near the rate nevertheless (ovs-vswitchd.conf.db(5),
// ingress_policing_burst).
func bandwidth(bits uint64) map[string]int {
	rate := min(max(bits/1000, 1), mostKilobits)
	return map[string]int{nbdb.QoSBandwidthRate: int(rate), nbdb.QoSBandwidthBurst: int(max(rate*8/10, leastBurst))}
}
