package ovspod

import "testing"

// What ovs-ofctl prints becomes what ovs-ofctl reads.
func TestDumps(t *testing.T) {
	const tlv = `NXT_TLV_TABLE_REPLY (xid=0x2):
 max option space=256 max fields=64
 allocated option space=8
 mapping table:
  class  type  length  match field
 ------  ----  ------  --------------
  0x102  0x80       4  tun_metadata0
  0x103  0x81       4  tun_metadata1
`
	const meterStats = `OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):
meter=1 pktps stats bands=
type=drop rate=10

meter=2 kbps bands=
type=drop rate=5
type=drop rate=20
`
	const groupDescription = `OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):
 group_id=1,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=drop
`
	const rules = `OFPST_FLOW reply (OF1.5) (xid=0x2):
 cookie=0x1, table=8, priority=50,igmp,igmp_type=17 actions=drop
`
	for what, c := range map[string][2]string{
		"options": {tlvMap(tlv), "{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0x103,type=0x81,len=4}->tun_metadata1"},
		"meters": {meters(meterStats), "meter=1 pktps stats bands= type=drop rate=10\n" +
			"meter=2 kbps bands= type=drop rate=5 type=drop rate=20\n"},
		"bundle": {bundle(groupDescription, rules), onlyIfEmpty +
			"group add group_id=1,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=drop\n" +
			"flow add cookie=0x1, table=8, priority=50,ip,nw_proto=2,tp_src=17 actions=drop\n"},
		"no bundle": {bundle("", ""), onlyIfEmpty},
	} {
		if c[0] != c[1] {
			t.Errorf("%s:\n%s\nwant\n%s", what, c[0], c[1])
		}
	}
}
