package ovs

import (
	"maps"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Flows as OVN 25.03 makes them for a switch, on a real bridge: what the ACLs of each direction deny is counted, and
// nothing else.
func TestDeniedPackets(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := testkit.StartVSwitch(t)
	testkit.Run(t, "ovs-vsctl", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev")
	for _, flow := range []string{
		"table=0,priority=2,ip actions=load:0x5->OXM_OF_METADATA[],load:0x20000->NXM_NX_REG8[],resubmit(,18)",
		"table=0,priority=1,ipv6 actions=load:0x5->OXM_OF_METADATA[],load:0x20000->NXM_NX_REG8[],resubmit(,49)",
		"table=0,arp actions=load:0x5->OXM_OF_METADATA[],load:0x10000->NXM_NX_REG8[],resubmit(,18)",
		"table=18,priority=1000,reg8=0x20000/0x20000,metadata=0x5 " +
			"actions=load:0->OXM_OF_PKT_REG4[48],load:0->OXM_OF_PKT_REG4[49],load:0->OXM_OF_PKT_REG4[50]",
		"table=49,priority=1000,reg8=0x20000/0x20000,metadata=0x5 actions=load:0->OXM_OF_PKT_REG4[48]," +
			"sample(probability=1,collector_set_id=1,obs_domain_id=2,obs_point_id=3)",
		"table=18,priority=1000,reg8=0x10000/0x10000,metadata=0x5 actions=resubmit(,19)",
		"table=20,priority=1000,reg8=0x20000/0x20000,metadata=0x5 actions=load:0->OXM_OF_PKT_REG4[48],resubmit(,21)",
		"table=18,priority=10 actions=drop",
	} {
		testkit.Run(t, "ovs-ofctl", "add-flow", "br-int", flow)
	}
	const from = "0a580a8002030a580a800204"
	send := func(times int, packet string) {
		t.Helper()
		for range times {
			testkit.Run(t, "ovs-ofctl", "packet-out", "br-int", "in_port=local, packet="+packet+", actions=table")
		}
	}
	send(3, from+"0800450000140000000040119999"+"0a8002030a800204")
	send(2, from+"86dd6000000000003b40"+"fd010000000000010000000000000003"+"fd010000000000010000000000000004")
	send(4, from+"08060001080006040001"+"0a580a8002030a8002030000000000000a800204")
	const match = "priority=1000,reg8=0x20000/0x20000,metadata=0x5"
	want := map[DenyingFlow]uint64{{18, match}: 3, {49, match}: 2}
	have, err := NewFlows(vs.Address).DeniedPackets(t.Context(), "br-int")
	if err != nil || !maps.Equal(have, want) {
		t.Errorf("denied %v, %v, want %v", have, err, want)
	}
	if (DenyingFlow{18, match}).ToPods() || !(DenyingFlow{49, match}).ToPods() {
		t.Error("table 18 is for packets from pods, table 49 for packets to pods")
	}
}
