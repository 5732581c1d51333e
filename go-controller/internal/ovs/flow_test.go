package ovs

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// external is a gateway node's bridge; with a VLAN its local port is an access
// port of it.
func external(vlan int) hostplan.External {
	return hostplan.External{
		Bridge: "breth0", Uplink: "eth0", UplinkPort: 1, PatchPort: 2, VLAN: vlan, LocalTag: vlan,
		MAC: ipnet.MAC{0x02, 0x42, 0xac, 0x12, 0, 2}, Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16")},
	}
}

// guard is a dual-stack cluster's.
func guard() hostplan.AntiSpoof {
	return hostplan.AntiSpoof{Inside: "10.244.0.0/16,fd00:10:244::/48", Join: "100.64.1.0/24,fd98::/64"}
}

// databases are one server's, of both families.
func databases() hostplan.DatabaseDrop {
	return hostplan.DatabaseDrop{Servers: "192.0.2.1,2001:db8::1", Ports: "6641-6644"}
}

// What Open vSwitch 3.1 and 3.5, which print the same, show of a gateway's
// flows: nothing is to be done.
func TestDumpIsAsWanted(t *testing.T) {
	for vlan, file := range map[int]string{0: "testdata/flows.txt", 100: "testdata/flows-vlan.txt"} {
		dump, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		have, err := parseFlows(string(dump))
		if err != nil || len(have) != 38 {
			t.Fatalf("%s: %d flows, %v; want 38", file, len(have), err)
		}
		want := gateway.Flows(external(vlan), "geneve", guard(), databases())
		if changes, script := diffFlows(want, have); len(changes) != 0 {
			t.Errorf("%s: changes:\n%s\nby\n%s", file, changes, script)
		}
	}
}

func TestDiffFlows(t *testing.T) {
	want := hostplan.Flows{Bridge: "b", Cookie: 7, List: []hostplan.Flow{
		{Table: 0, Priority: 5, Match: "ip,in_port=1", Actions: "output:2"},
		{Table: 1, Priority: 32768, Actions: "NORMAL"},
		{Table: 2, Priority: 0, Match: "arp", Actions: "drop"},
	}}
	const dump = `OFPST_FLOW reply (OF1.4) (xid=0x2):
 cookie=0x7, priority=5,in_port=1,ip actions=output:3
 cookie=0x7, table=1, actions=NORMAL
 cookie=0x7, table=2, idle_timeout=60, send_flow_rem priority=0,arp actions=drop
 cookie=0x7, table=3, priority=1,udp6,tp_dst=53 actions=drop
`
	have, err := parseFlows(dump)
	if err != nil {
		t.Fatal(err)
	}
	changes, script := diffFlows(want, have)
	const wantChanges = `- flow of b table=3,priority=1,tp_dst=53,udp6,actions=drop
~ flow of b table=0,priority=5,in_port=1,ip,actions=output:2 (was: actions=output:3)
~ flow of b table=2,priority=0,arp,actions=drop (was: actions=drop idle_timeout=60 send_flow_rem)
`
	var got strings.Builder
	for _, c := range changes {
		fmt.Fprintln(&got, c)
	}
	if got.String() != wantChanges {
		t.Errorf("changes:\n%s\nwant:\n%s", got.String(), wantChanges)
	}
	const wantScript = `delete_strict cookie=0x7/-1,table=3,priority=1,tp_dst=53,udp6
add cookie=0x7,table=0,priority=5,in_port=1,ip,actions=output:2
add cookie=0x7,table=2,priority=0,arp,actions=drop
`
	if script != wantScript {
		t.Errorf("script:\n%s\nwant:\n%s", script, wantScript)
	}
	for _, bad := range []string{" cookie=0x7, table=x, actions=drop", " cookie=0x7, priority=, actions=drop"} {
		if _, err := parseFlows(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// On a real bridge: flows come, a second time there is nothing to do, damage is
// found and repaired, flows of others stay, and all of it is told.
func TestFlowsOnABridge(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	vs := testkit.StartVSwitch(t)
	testkit.Run(t, "ovs-vsctl", "add-br", "breth0", "--", "set", "bridge", "breth0", "datapath_type=netdev")
	flows := NewFlows(vs.Address)
	converge := func(want hostplan.Flows) []Change {
		t.Helper()
		changes, err := flows.Converge(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	want := gateway.Flows(external(0), "geneve", guard(), databases())
	testkit.Run(t, "ovs-ofctl", "add-flow", "breth0", "cookie=0x1,table=1,priority=50,tcp,actions=drop")
	if n := len(converge(want)); n != 38 {
		t.Errorf("%d changes at first, want 38", n)
	}
	if again := converge(want); len(again) != 0 {
		t.Errorf("a second time changes %v", again)
	}
	var told atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		flows.Watch(ctx, "breth0", func() { told.Add(1) })
		close(ended)
	}()
	testkit.Eventually(t, "the watch listens", func() string {
		if told.Load() == 0 {
			return "nothing told"
		}
		return ""
	})
	for damage, changes := range map[string]int{
		"del-flows breth0 arp": 1,
		"--strict del-flows breth0 table=1,priority=100,ct_state=+trk+est":     1,
		"mod-flows breth0 in_port=2,actions=drop":                              8,
		"add-flow breth0 cookie=0x6e626777,table=7,priority=3,ip,actions=drop": 1,
		"--strict del-flows breth0 table=1,priority=10":                        1,
		"add-flow breth0 cookie=0x9,table=1,priority=10,actions=":              1,
		// No more than a number is another one, and the cookie stays ours.
		"--strict mod-flows breth0 'table=1,priority=100,ct_state=+trk+est,actions=output:3'":              1,
		"--strict mod-flows breth0 'table=0,priority=110,ip,in_port=2,actions=ct(commit,zone=1),output:1'": 1,
	} {
		before := told.Load()
		testkit.Run(t, "sh", "-ec", "ovs-ofctl -O OpenFlow14 "+damage)
		testkit.Eventually(t, "the damage is told: "+damage, func() string {
			if told.Load() == before {
				return "nothing told"
			}
			return ""
		})
		if got := converge(want); len(got) != changes {
			t.Errorf("after %q the changes are %v, want %d", damage, got, changes)
		}
	}
	rest := func() (out []string) {
		for line := range strings.Lines(testkit.Run(t, "ovs-ofctl", "--no-stats", "dump-flows", "breth0")) {
			if !strings.Contains(line, "cookie=0x6e626777") {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return out
	}
	others := []string{"cookie=0x1, table=1, priority=50,tcp actions=drop", "priority=0 actions=NORMAL"}
	if got := rest(); !slices.Contains(got, others[0]) || !slices.Contains(got, others[1]) || len(got) != 2 {
		t.Errorf("the flows of others are %q, want %q", got, others)
	}
	// An older version's flows are replaced in one bundle, and not twice.
	older := gateway.Flows(external(0), "geneve", guard(), databases())
	for i, f := range older.List {
		older.List[i].Actions = strings.ReplaceAll(f.Actions, fmt.Sprintf("zone=%d", gateway.Zone), "zone=63999")
	}
	for _, version := range []hostplan.Flows{older, want} {
		if n := len(converge(version)); n != 4 {
			t.Errorf("another zone changes %d flows, want 4", n)
		}
	}
	if changes, err := NewFlows(vs.Address).Converge(t.Context(), want); err != nil || len(changes) != 0 {
		t.Errorf("a restart changes %v, %v", changes, err)
	}
	// ovs-vswitchd comes back without flows.
	before := told.Load()
	vs.StopDaemon(t)
	if _, err := flows.Read(t.Context(), "breth0", gateway.Cookie); err == nil || !strings.Contains(err.Error(),
		"reading the flows of bridge breth0") {
		t.Errorf("without ovs-vswitchd: %v", err)
	}
	vs.StartDaemon(t)
	testkit.Eventually(t, "the restart is told", func() string {
		if told.Load() == before {
			return "nothing told"
		}
		return ""
	})
	// A bridge that is being made may refuse, or lose what it has just got.
	testkit.Eventually(t, "the flows are back", func() string {
		if changes, err := flows.Converge(t.Context(), want); err != nil || len(changes) != 0 {
			return fmt.Sprint(changes, err)
		}
		return ""
	})
	vlan := gateway.Flows(external(100), "vxlan", guard(), databases())
	if n := len(converge(vlan)); n == 0 || len(converge(vlan)) != 0 {
		t.Errorf("%d changes to a VLAN, and then others", n)
	}
	cancel()
	<-ended
	for _, c := range converge(gateway.NoFlows("breth0")) {
		if !strings.HasPrefix(c.Text, "- flow of breth0 ") {
			t.Errorf("removing ours makes the change %q", c)
		}
	}
	if got, err := flows.Read(t.Context(), "breth0", gateway.Cookie); err != nil || len(got) != 0 {
		t.Errorf("flows left: %v, %v", got, err)
	}
	// Who takes the last flows away leaves the bridge a switch.
	testkit.Run(t, "ovs-ofctl", "del-flows", "breth0")
	converge(want)
	if got := rest(); len(got) != 0 {
		t.Errorf("of others there is %q", got)
	}
	last := converge(gateway.NoFlows("breth0"))
	if text := "+ flow of breth0 table=0,priority=0,actions=NORMAL"; len(last) != 39 || last[38].Text != text {
		t.Errorf("%d changes, the last of %v, want 31 and %q", len(last), last, text)
	}
	if got := rest(); len(got) != 1 || got[0] != others[1] {
		t.Errorf("the flows that are left are %q, want %q", got, others[1])
	}
	if again := converge(gateway.NoFlows("breth0")); len(again) != 0 {
		t.Errorf("a second time changes %v", again)
	}
	if _, err := flows.Converge(t.Context(),
		hostplan.Flows{Bridge: "breth0", Cookie: 7,
			List: []hostplan.Flow{{Match: "nonsense=1", Actions: "drop"}}}); err == nil || !strings.Contains(err.Error(),
		"nonsense") {
		t.Errorf("a flow that can't be: %v", err)
	}
	t.Setenv("PATH", "/nowhere")
	if _, err := flows.Read(t.Context(), "breth0", 7); err == nil || !strings.Contains(err.Error(),
		"install openvswitch-switch") {
		t.Errorf("without ovs-ofctl: %v", err)
	}
}
