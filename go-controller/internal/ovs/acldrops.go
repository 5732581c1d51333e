package ovs

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// deniedPackets selects the flows for packets that an ACL denies: OVN keeps the ACL's verdict in a register until a
// later table acts on it. OVN 23.03 and older have no such flows.
const deniedPackets = "reg8=0x20000/0x20000"

// firstEgressTable begins the tables for packets to a port. Releases of OVN put the egress pipeline at table 40 and
// later. They have the ACLs of packets from a port well before that.
const firstEgressTable = 40

// A DenyingFlow drops the packets of one logical switch that ACLs deny.
type DenyingFlow struct {
	Table int
	Match string // with the switch, as metadata
}

// ToPods tells whether the packets were on their way to a port, rather than from one.
func (f DenyingFlow) ToPods() bool { return f.Table >= firstEgressTable }

// denyingLine is a flow of `ovs-ofctl dump-flows` that drops what an ACL denies, such as
//
//	cookie=0x5e, duration=7s, table=48, n_packets=3, n_bytes=222, idle_age=1, priority=1000,
//	reg8=0x20000/0x20000,metadata=0x1 actions=load:0->OXM_OF_PKT_REG4[48],load:0->OXM_OF_PKT_REG4[49]
//
// It sets registers back, and sends the packet nowhere. Somebody may have OVN sample what it drops.
var denyingLine = regexp.MustCompile(`table=(\d+), n_packets=(\d+), .* (\S*` + deniedPackets + `\S*) ` +
	`actions=(?:drop|(?:,?(?:(?:load|set_field):[^,]+|sample\([^)]*\)))+)$`)

// DeniedPackets counts, for each flow of the bridge, the packets that ACLs have denied. The bridge is that of OVN. A
// flow counts from zero when ovn-controller or ovs-vswitchd has made it anew.
func (f *Flows) DeniedPackets(ctx context.Context, bridge string) (map[DenyingFlow]uint64, error) {
	out, err := f.run(ctx, "", "--no-names", "dump-flows", f.target(bridge), deniedPackets)
	if err != nil {
		return nil, fmt.Errorf("reading the flows of bridge %s: %w", bridge, err)
	}
	return parseDenied(out)
}

func parseDenied(dump string) (map[DenyingFlow]uint64, error) {
	flows := map[DenyingFlow]uint64{}
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		found := denyingLine.FindStringSubmatch(line)
		if found == nil {
			continue // another flow about the register, or the header
		}
		table, err := strconv.Atoi(found[1])
		if err != nil {
			return nil, fmt.Errorf("parsing flow %q: %w", line, err)
		}
		packets, err := strconv.ParseUint(found[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parsing flow %q: %w", line, err)
		}
		flows[DenyingFlow{table, found[3]}] = packets
	}
	return flows, nil
}
