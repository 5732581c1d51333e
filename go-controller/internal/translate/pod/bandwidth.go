package pod

import (
	"fmt"
	"math"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// limitPriority is the priority of the rows that limit bandwidth. OVN uses the row of the highest priority that matches
// a packet, separately for bandwidth and for DSCP.
const limitPriority = 1000

// The highest rate and the least burst, in kilobits. The column holds twice the rate (ovn-nb(5), QoS), but datapaths
// add the burst to it in 32 bits. A packet longer than the burst never passes: the longest that a pod hands to Open
// vSwitch, before segmentation, has 64 KiB.
const (
	mostKilobits = math.MaxUint32 / 2
	leastBurst   = (64<<10)*8/1000 + 1
)

// limits is a row for each direction in which the pod has a limit. The directions are the switch's: what a pod sends
// enters the switch at its port.
func limits(m translate.Maker, p *cluster.Pod, port string, sw nb.Ref) []nb.Row {
	var out []nb.Row
	add := func(bits uint64, role string, direction nbdb.QoSDirection, field string) {
		if bits == 0 {
			return
		}
		out = append(out, m.Row(role, &nbdb.QoS{
			Priority: limitPriority, Direction: direction, Match: fmt.Sprintf("%s == %q", field, port),
			Bandwidth: bandwidth(bits),
		}, nb.Slot{In: sw, Column: "qos_rules"}))
	}
	add(p.Bandwidth.Ingress, names.RoleIngressLimit, nbdb.QoSDirectionToLport, "outport")
	add(p.Bandwidth.Egress, names.RoleEgressLimit, nbdb.QoSDirectionFromLport, "inport")
	return out
}

// bandwidth is the value of the column for a limit in bits per second. The limit polices: it drops what exceeds the
// rate and delays nothing. A burst of 80 % of the rate lets TCP come near the rate nevertheless
// (ovs-vswitchd.conf.db(5), ingress_policing_burst).
func bandwidth(bits uint64) map[string]int {
	rate := min(max(bits/1000, 1), mostKilobits)
	return map[string]int{nbdb.QoSBandwidthRate: int(rate), nbdb.QoSBandwidthBurst: int(max(rate*8/10, leastBurst))}
}
