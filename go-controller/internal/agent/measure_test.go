package agent

import (
	"fmt"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// What ACLs deny is counted from the agent's start, also when flows are made anew, come and go.
func TestNewlyDenied(t *testing.T) {
	type flows = map[ovs.DenyingFlow]uint64
	from, to := ovs.DenyingFlow{Table: 18}, ovs.DenyingFlow{Table: 48}
	other := ovs.DenyingFlow{Table: 48, Match: "metadata=0x2"}
	for _, c := range []struct {
		what        string
		before, now flows
		want        string
	}{
		{"the agent has started", nil, flows{from: 7, to: 9}, "map[egress:0 ingress:0]"},
		{"packets were denied", flows{from: 7, to: 9}, flows{from: 7, to: 12}, "map[egress:0 ingress:3]"},
		{"a flow was made anew", flows{from: 7, to: 9}, flows{from: 8, to: 2}, "map[egress:1 ingress:2]"},
		{"a switch came", flows{to: 9}, flows{to: 10, other: 5}, "map[ingress:6]"},
		{"a switch went", flows{to: 9, other: 5}, flows{to: 10}, "map[ingress:1]"},
		{"OVN has started after the agent", flows{}, flows{to: 4}, "map[ingress:4]"},
		{"OVN without such flows", nil, flows{}, "map[]"},
	} {
		if have := fmt.Sprint(newlyDenied(c.before, c.now)); have != c.want {
			t.Errorf("%s: %s, want %s", c.what, have, c.want)
		}
	}
}

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
