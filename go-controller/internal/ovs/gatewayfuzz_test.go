package ovs

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Names, servers' addresses and settings of any content give the flows that are meant, one a line. No text of theirs is
// in the lines that ovs-ofctl gets.
func FuzzGatewayFlows(f *testing.F) {
	f.Add("breth0", "tcp:192.0.2.1:6642,ssl:[2001:db8::1]:16642", "tcp:192.0.2.2:6641", "geneve",
		"10.244.1.0/24", "physnet:br0", 0)
	f.Add("br,add priority=9", "tcp:[fe80::1%0\nadd priority=9 actions=drop]:6642", "tcp:192.0.2.2:6641\n", "vxlan",
		"fd01::/64", "a:b", 7)
	f.Add("br\nadd actions=drop", "tcp:[fe80::1%eth0 actions=drop#]:1", "ssl:[::ffff:192.0.2.1%1]:6641", "geneve\nadd ",
		"fe80::%x/64", "", 4095)
	f.Fuzz(func(t *testing.T, name, southbound, northbound, encap, subnet, mappings string, vlan int) {
		c := config.DefaultNode()
		c.Name, c.EncapType, c.SBAddress, c.Gateway.Mode = name, encap, southbound, annotation.GatewayShared
		facts := hostplan.Facts{Southbound: northbound, Northbound: northbound,
			Gateway: hostplan.GatewayRecord{Mappings: mappings, Bridge: mappings, Added: mappings},
			External: &hostplan.External{Bridge: name, Uplink: name, Patch: name, Link: name, UplinkPort: 1, PatchPort: 2,
				VLAN: vlan & 0xfff, LocalTag: vlan & 0xfff, MAC: ipnet.MAC{2, 5: 1},
				Addrs: []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16")}}}
		if p, err := netip.ParsePrefix(subnet); err == nil {
			facts.Subnets, c.ServiceCIDRs = []netip.Prefix{p.Masked()}, []netip.Prefix{p.Masked()}
		}
		plan, err := gateway.Plan(facts, c)
		if err != nil {
			return
		}
		for _, want := range plan.Flows {
			checkScript(t, want)
		}
	})
}

// checkScript fails if a line is not one of the wanted flows, or has anything that is no field, action, address or
// number.
func checkScript(t *testing.T, want hostplan.Flows) {
	t.Helper()
	const add = "add cookie=0x6e626777," // gateway.Cookie
	_, script := diffFlows(want, nil)
	lines := strings.Split(strings.TrimSuffix(script, "\n"), "\n")
	if script == "" {
		lines = nil
	}
	if len(lines) != len(want.List) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want.List), script)
	}
	for i, line := range lines {
		head, actions, _ := strings.Cut(strings.TrimPrefix(line, add), "actions=")
		got, err := parseFlow(head, actions)
		meant := want.List[i]
		meant.Match = sortedFields(meant.Match)
		if !strings.HasPrefix(line, add) || err != nil || got != meant {
			t.Errorf("line %q is %+v, %v, want %+v", line, got, err, meant)
		}
		fields := strings.Split(meant.Match, ",")
		known := func(field string) bool { return field == "" || gatewayField.MatchString(field) }
		if at := slices.IndexFunc(fields, func(f string) bool { return !known(f) }); at >= 0 {
			t.Errorf("line %q: %q is no field", line, fields[at])
		}
		if !gatewayActions.MatchString(meant.Actions) {
			t.Errorf("line %q: actions", line)
		}
	}
}

// The fields and actions of ovs-fields(7) and ovs-actions(7) that gateways' flows have.
var (
	gatewayField = regexp.MustCompile(`^(arp|ip|ipv6|icmp6|udp|udp6|tcp|tcp6|ct_state=\+(est|rel)\+trk|nw_frag=no|` +
		`(in_port|icmp_type|tp_dst|dl_vlan)=[0-9]+|vlan_tci=0x0000/0x1fff|dl_dst=[0-9a-f:]+(/[0-9a-f:]+)?|` +
		`nw_(src|dst)=[0-9.]+(/[0-9]+)?|ipv6_(src|dst)=[0-9a-f:.]+(/[0-9]+)?)$`)
	gatewayActions = regexp.MustCompile(`^(drop|(` +
		`(clone\(move:NXM_OF_ETH_SRC\[\]->NXM_OF_ETH_DST\[\],NORMAL\)|NORMAL|LOCAL|` +
		`pop_vlan|output:[0-9]+|ct\(table=1,zone=64000\)|ct\(commit,zone=64000\))(,|$))+)$`)
)
