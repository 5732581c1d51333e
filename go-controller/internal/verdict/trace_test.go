package verdict_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// dice make random ACLs and packets, out of few names, addresses and ports, so that many match.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// match is a random expression that OVN accepts. Within an odd number of !, nominal fields are compared with !=.
func (d dice) match(depth int, negated bool) string {
	if depth == 0 || d.chance(20) {
		return d.comparison(negated)
	}
	if d.chance(20) {
		return "!(" + d.match(depth-1, !negated) + ")"
	}
	list := []string{"(" + d.match(depth-1, negated) + ")", "(" + d.match(depth-1, negated) + ")"}
	return strings.Join(list, pick(d, " && ", " || "))
}

func (d dice) comparison(negated bool) string {
	switch d.IntN(7) {
	case 0:
		if negated {
			return pick(d, "ip.proto != 6", "eth.type != {0x800}", "0", "1")
		}
		return pick(d, "ip", "ip4", "ip6", "tcp", "udp", "sctp", "icmp4", "icmp6", "ip.proto == {6 17}")
	case 1:
		return pick(d, "inport", "outport") + map[bool]string{false: " == ", true: " != "}[negated] + d.ports()
	case 2, 3:
		return d.addresses()
	case 4:
		return d.port() + pick(d, " == ", " != ") + pick(d, "80", "443", "{80, 443}", "{8080, 0x50/0xfff0}")
	case 5:
		return d.port() + pick(d, " < ", " <= ", " > ", " >= ") + pick(d, "80", "443", "8080")
	}
	low, high := pick(d, "79", "80", "443"), pick(d, "443", "8080")
	if d.chance(50) {
		return low + pick(d, " < ", " <= ") + d.port() + pick(d, " < ", " <= ") + high
	}
	return high + pick(d, " > ", " >= ") + d.port() + pick(d, " > ", " >= ") + low
}

func (d dice) port() string { return pick(d, "tcp.dst", "tcp.dst", "udp.dst", "sctp.dst") }

func (d dice) ports() string {
	one := func() string { return pick(d, `"a1"`, `"b1"`, `"a2"`, `"stor-n2"`, "@g0", "@g1", "@g2") }
	switch d.IntN(12) {
	case 0:
		return "@gone"
	case 1, 2, 3:
		return "{" + one() + ", " + one() + "}"
	}
	return one()
}

func (d dice) addresses() string {
	family := d.IntN(2)
	one := func() string {
		switch d.IntN(3) {
		case 0:
			return pick(d, [2][]string{{"$s4", "$t4", "$none"}, {"$s6", "$t6", "$none"}}[family]...)
		case 1:
			return pods()[pick(d, "a1", "b1", "a2", "b2")][family].String()
		}
		return pick(d, [2][]string{
			{"10.128.0.0/23", "10.128.2.0/24", "10.0.0.0/9", "0.0.0.0/0", "10.0.0.3/255.0.0.255"},
			{"fd01::/64", "fd01:0:0:2::/64", "::/0", "::3/::ff"}}[family]...)
	}
	value := one()
	switch d.IntN(24) {
	case 0:
		value = "{" + value + ", $gone}"
	case 1:
		value = pick(d, "$s4", "$s6") // perhaps of the other family
	case 2, 3, 4, 5, 6, 7, 8:
		value = "{" + value + ", " + one() + "}"
	}
	return []string{"ip4", "ip6"}[family] + pick(d, ".src", ".dst") + pick(d, " == ", " == ", " == ", " != ") + value
}

// world is a database with random port groups and ACLs, of the given number of tiers. All matches are in parentheses:
// with OVN 23.03, an ACL of action reject has no effect when its match is a disjunction without them.
func (d dice) world(tiers int) world {
	w := newWorld()
	w.set("s4", "10.128.0.3", "10.128.2.4")
	w.set("t4", "10.128.2.0/23")
	w.set("s6", "fd01::3", "fd01:0:0:2::4")
	w.set("t6", "fd01:0:0:2::/64")
	w.set("none")
	var places []string
	for i := range 3 {
		var ports []string
		for _, p := range []string{"a1", "b1", "a2", "b2"} {
			if d.chance(40) {
				ports = append(ports, p)
			}
		}
		w.group(fmt.Sprintf("g%d", i), ports...)
		places = append(places, fmt.Sprintf("g%d", i))
	}
	places = append(places, "n1", "n2")
	actions := []string{"allow", "allow-related", "allow-related", "drop", "drop", "reject", "allow-stateless"}
	if tiers > 1 {
		actions = append(actions, "pass", "pass")
	}
	for _, priority := range d.Perm(14) {
		w.acl(pick(d, places...), fmt.Sprintf("%s %s %d %d", pick(d, "from-lport", "from-lport-after", "to-lport"),
			pick(d, actions...), 100+priority, d.IntN(tiers)), "("+d.match(d.IntN(4), false)+")")
	}
	return w
}

func (d dice) packet() verdict.Packet {
	names := []string{"a1", "b1", "a2", "b2"}
	order := d.Perm(len(names))
	family := d.IntN(2)
	p := connection(names[order[0]], names[order[1]], family, pick(d, verdict.TCP, verdict.TCP, verdict.UDP, verdict.SCTP),
		pick(d, uint16(80), 443, 8080))
	if d.chance(20) {
		p.SrcPort, p.DstPort = 0, 0
		p.Protocol, p.ICMPType = [2]verdict.Protocol{verdict.ICMP, verdict.ICMPv6}[family], [2]uint8{8, 128}[family]
	}
	return p
}

// traced tells whether a packet arrives, according to ovn-trace, and what ovn-trace prints.
func traced(t *testing.T, sb string, w world, p verdict.Packet) (arrives bool, trace string) {
	t.Helper()
	from, to := p.Inport[1:], p.Outport[1:] // the number of the switch
	dst := macOf(p.Outport)
	if from != to {
		dst = "0a:00:00:00:00:0" + from
	}
	family := "ip4"
	if p.Src.Is6() {
		family = "ip6"
	}
	proto := map[verdict.Protocol]string{verdict.TCP: "tcp", verdict.UDP: "udp", verdict.SCTP: "sctp"}[p.Protocol]
	flow := fmt.Sprintf("inport == %q && eth.src == %s && eth.dst == %s && %s.src == %s && %[4]s.dst == %[6]s && "+
		"ip.ttl == 64 && ", p.Inport, macOf(p.Inport), dst, family, p.Src, p.Dst)
	if proto == "" {
		flow += fmt.Sprintf("icmp%s.type == %d && icmp%[1]s.code == 0", family[2:], p.ICMPType)
	} else {
		flow += fmt.Sprintf("%s.src == %d && %[1]s.dst == %[3]d", proto, p.SrcPort, p.DstPort)
	}
	args := []string{"--db=" + sb}
	for range 4 { // one for each time that the packet enters connection tracking
		args = append(args, "--ct=new")
	}
	trace = testkit.Run(t, "ovn-trace", append(args, "n"+from, flow)...)
	outputs := regexp.MustCompile(`output to "([^"]*)"`).FindAllStringSubmatch(trace, -1)
	return len(outputs) > 0 && outputs[len(outputs)-1][1] == p.Outport, trace
}

// The evaluator and a real OVN agree on random packets and random ACLs, void ones and those of port groups among them.
func TestOVNTraceAgrees(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	sb := testkit.StartOVN(t)
	schema, err := os.ReadFile("/usr/share/ovn/ovn-nb.ovsschema")
	if err != nil {
		t.Fatal(err)
	}
	tiers := 1
	if bytes.Contains(schema, []byte(`"tier"`)) { // OVN 23.06 and newer
		tiers = 3
	}
	seen := map[string]int{}
	for round := range 6 {
		d := dice{rand.New(rand.NewPCG(uint64(round), 31))}
		w := d.world(tiers)
		var script strings.Builder
		if err := show.Write(&script, show.NBCtl, theSchema(), w.Database); err != nil {
			t.Fatal(err)
		}
		testkit.Run(t, "sh", "-ec", script.String())
		testkit.Run(t, "ovn-nbctl", "--timeout=60", "--wait=sb", "sync")
		e := verdict.New(w)
		for range 40 {
			p := d.packet()
			v, err := e.Connection(p, netip.AddrPort{})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if arrives, trace := traced(t, sb, w, p); arrives != v.Allowed {
				t.Fatalf("round %d: %+v\nverdict %+v\novn-trace: arrives %v\n%s\n%s", round, p, v, arrives, trace, script.String())
			}
			count(seen, v)
		}
		testkit.Run(t, "sh", "-ec", "ovn-nbctl --all destroy Logical_Switch -- --all destroy Logical_Router "+
			"-- --all destroy Port_Group -- --all destroy Address_Set")
	}
	t.Log(seen)
	for what, least := range map[string]int{"allowed": 80, "dropped": 80, "void": 20, "by default": 50,
		string(verdict.FromLport): 20, string(verdict.FromLportAfterLB): 20, string(verdict.ToLport): 20} {
		if seen[what] < least {
			t.Errorf("%s: %d, want %d or more: the sample proves too little", what, seen[what], least)
		}
	}
}

func count(seen map[string]int, v verdict.Verdict) {
	seen[map[bool]string{true: "allowed", false: "dropped"}[v.Allowed]]++
	for _, s := range v.Steps {
		if s.ACL == nil {
			seen["by default"]++
		} else {
			seen[string(s.Stage)]++
		}
		if len(s.Void) > 0 {
			seen["void"]++
		}
	}
}
