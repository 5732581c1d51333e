package agent

import (
	"fmt"
	"testing"
)

// What ovs-vswitchd says of its datapath, as versions 3.1 and 3.5 print it.
func TestParseDatapath(t *testing.T) {
	lookups, flows := parseDatapaths(`netdev@ovs-netdev:
  lookups: hit:412 missed:31 lost:2
  flows: 7
  port 0: ovs-netdev (tap)
system@ovs-system:
  lookups: hit:1000 missed:9 lost:0
  flows: 3
  masks: hit:2000 total:2 hit/pkt:1.98
  caches:
    masks-cache: size:256
  port 0: ovs-system (internal)`)
	if have, want := fmt.Sprint(lookups, flows), "map[hit:1412 lost:2 missed:40] 10"; have != want {
		t.Errorf("datapaths: %s, want %s", have, want)
	}
	drops := parseDrops(`Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=1b1a0f4c:
datapath_drop_upcall_error   0.0/sec     0.000/sec        0.0000/sec   total: 4
bridge_reconfigure         0.0/sec     0.017/sec        0.0017/sec   total: 6
drop_action_of_pipeline    0.2/sec     0.000/sec        0.0000/sec   total: 12
drop_action_congestion     0.2/sec     0.000/sec        0.0000/sec   total: 1
129 events never hit`)
	if have, want := fmt.Sprint(drops), "map[drop_action_congestion:1 upcall_error:4]"; have != want {
		t.Errorf("drops: %s, want %s", have, want)
	}
}
