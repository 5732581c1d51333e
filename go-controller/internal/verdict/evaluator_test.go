package verdict_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

var theSchema = sync.OnceValue(nb.NewSchema)

// world is a database of two switches, n1 and n2, that a router joins. The pods a1 and b1 are on n1, a2 and b2 on n2.
type world struct{ *nb.Database }

func uuid(name string) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000000", hash(name)) }

func hash(s string) uint32 {
	h := uint32(2166136261)
	for _, c := range []byte(s) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func uuids(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, uuid(n))
	}
	return out
}

// pods are the addresses of each pod's port.
func pods() map[string][2]netip.Addr {
	return map[string][2]netip.Addr{
		"a1": {netip.MustParseAddr("10.128.0.3"), netip.MustParseAddr("fd01::3")},
		"b1": {netip.MustParseAddr("10.128.0.4"), netip.MustParseAddr("fd01::4")},
		"a2": {netip.MustParseAddr("10.128.2.3"), netip.MustParseAddr("fd01:0:0:2::3")},
		"b2": {netip.MustParseAddr("10.128.2.4"), netip.MustParseAddr("fd01:0:0:2::4")},
	}
}

func newWorld() world {
	w := world{nb.NewDatabase(theSchema())}
	for _, n := range []string{"1", "2"} {
		w.Put(&nbdb.LogicalSwitch{UUID: uuid("n" + n), Name: "n" + n, Ports: uuids("a"+n, "b"+n, "stor-n"+n)})
		w.Put(&nbdb.LogicalSwitchPort{UUID: uuid("stor-n" + n), Name: "stor-n" + n, Type: "router",
			Addresses: []string{"router"}, Options: map[string]string{"router-port": "rtos-n" + n}})
		w.Put(&nbdb.LogicalRouterPort{UUID: uuid("rtos-n" + n), Name: "rtos-n" + n, MAC: "0a:00:00:00:00:0" + n,
			Networks: map[string][]string{"1": {"10.128.0.1/23", "fd01::1/64"},
				"2": {"10.128.2.1/23", "fd01:0:0:2::1/64"}}[n]})
	}
	w.Put(&nbdb.LogicalRouter{UUID: uuid("r"), Name: "r", Ports: uuids("rtos-n1", "rtos-n2")})
	for name, addrs := range pods() {
		w.Put(&nbdb.LogicalSwitchPort{UUID: uuid(name), Name: name,
			Addresses: []string{fmt.Sprintf("%s %s %s", macOf(name), addrs[0], addrs[1])}})
	}
	return w
}

func macOf(pod string) string { return fmt.Sprintf("0a:00:00:00:%02x:%02x", pod[0], pod[1]) }

// group adds a port group.
func (w world) group(name string, ports ...string) {
	w.Put(&nbdb.PortGroup{UUID: uuid("group " + name), Name: name, Ports: uuids(ports...)})
}

func (w world) set(name string, addresses ...string) {
	w.Put(&nbdb.AddressSet{UUID: uuid("set " + name), Name: name, Addresses: addresses})
}

// acl adds an ACL to a switch or a group. The stage, action, priority and tier are of the form "to-lport drop 10 0".
func (w world) acl(in, what, match string) string {
	a := &nbdb.ACL{UUID: uuid(in + what + match), Match: match}
	var direction string
	if _, err := fmt.Sscanf(what, "%s %s %d %d", &direction, &a.Action, &a.Priority, &a.Tier); err != nil {
		panic(err)
	}
	a.Direction = strings.TrimSuffix(direction, "-after")
	if direction == "from-lport-after" {
		a.Direction, a.Options = "from-lport", map[string]string{"apply-after-lb": "true"}
	}
	w.Put(a)
	if row, is := w.Row(nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: uuid(in)}).(*nbdb.LogicalSwitch); is {
		row.ACLs = append(row.ACLs, a.UUID)
		w.Put(row)
	}
	if row, is := w.Row(nb.Ref{Table: nbdb.PortGroupTable, UUID: uuid("group " + in)}).(*nbdb.PortGroup); is {
		row.ACLs = append(row.ACLs, a.UUID)
		w.Put(row)
	}
	return a.UUID
}

func connection(from, to string, family int, proto verdict.Protocol, port uint16) verdict.Packet {
	return verdict.Packet{Inport: from, Outport: to, Src: pods()[from][family], Dst: pods()[to][family], Protocol: proto,
		SrcPort: 40000, DstPort: port}
}

// text is a verdict in short: "allowed: n1 from-lport default, n1 to-lport ACL".
func text(t *testing.T, db world, p verdict.Packet, service netip.AddrPort) string {
	t.Helper()
	v, err := verdict.New(db).Connection(p, service)
	if err != nil {
		return err.Error()
	}
	var steps []string
	for i, s := range v.Steps {
		if s.Allowed != (v.Allowed || i < len(v.Steps)-1) {
			t.Errorf("step %d of %v", i, v)
		}
		decided := "by default"
		if s.ACL != nil {
			decided = s.ACL.Action + " " + s.ACL.Match
		}
		if decided != "by default" || len(s.Void) > 0 {
			steps = append(steps, fmt.Sprintf("%s %s %s void %d", s.Switch, s.Stage, decided, len(s.Void)))
		}
	}
	return fmt.Sprintf("%v after %d: %s", v.Allowed, len(v.Steps), strings.Join(steps, ", "))
}

func TestConnections(t *testing.T) {
	for name, test := range map[string]struct {
		build    func(world)
		from, to string
		service  string
		want     string
	}{
		"default": {func(world) {}, "a1", "b1", "", "true after 3: "},
		"across":  {func(world) {}, "a1", "a2", "", "true after 6: "},
		"highest priority": {func(w world) {
			w.acl("n1", "to-lport drop 10 0", "ip4")
			w.acl("n1", "to-lport allow-related 11 0", "tcp")
			w.acl("n1", "to-lport drop 12 0", "udp")
		}, "a1", "b1", "", "true after 3: n1 to-lport allow-related tcp void 0"},
		"a drop ends the way": {func(w world) { w.acl("n1", "from-lport reject 10 0", `inport == "a1"`) },
			"a1", "a2", "", `false after 1: n1 from-lport reject inport == "a1" void 0`},
		"only the switches on the way": {func(w world) { w.acl("n2", "to-lport drop 10 0", "ip") }, "a1", "b1", "",
			"true after 3: "},
		"the port that leads to the router": {func(w world) { w.acl("n1", "to-lport drop 10 0", `outport == "stor-n1"`) },
			"a1", "a2", "", `false after 3: n1 to-lport drop outport == "stor-n1" void 0`},
		"from the router": {func(w world) { w.acl("n2", "from-lport-after drop 10 0", `inport == "stor-n2"`) },
			"a1", "a2", "", `false after 5: n2 from-lport after load balancing drop inport == "stor-n2" void 0`},
		"from outside": {func(w world) { w.acl("n2", "to-lport drop 10 0", `inport == "stor-n2" && outport == "a2"`) },
			"", "a2", "", `false after 3: n2 to-lport drop inport == "stor-n2" && outport == "a2" void 0`},
		"to outside": {func(w world) { w.acl("n2", "from-lport allow 10 0", `inport == "a2"`) },
			"a2", "", "", `true after 3: n2 from-lport allow inport == "a2" void 0`},
		"a group's ACLs": {func(w world) {
			w.group("g", "a2", "b1")
			w.acl("g", "to-lport drop 10 0", "outport == @g")
		}, "a1", "a2", "", "false after 6: n2 to-lport drop outport == @g void 0"},
		"a group's ACLs hold for all ports of the switch": {func(w world) {
			w.group("g", "b1")
			w.acl("g", "to-lport drop 10 0", "ip")
		}, "b1", "a1", "", "false after 3: n1 to-lport drop ip void 0"},
		"a group without a port on the switch is void": {func(w world) {
			w.group("g", "b2")
			w.acl("n1", "to-lport drop 10 0", "outport == @g || ip")
			w.acl("n1", "to-lport drop 9 0", "ip")
		}, "a1", "b1", "", "false after 3: n1 to-lport drop ip void 1"},
		"a missing set is void": {func(w world) { w.acl("n1", "to-lport drop 10 0", "ip4 || ip4.src == {$gone}") },
			"a1", "b1", "", "true after 3: n1 to-lport by default void 1"},
		"no outport before the switch knows it": {func(w world) {
			w.acl("n1", "from-lport drop 10 0", `outport == "b1"`)
			w.acl("n1", "from-lport-after drop 10 0", `outport == "b1"`)
		}, "a1", "b1", "", "true after 3: "},
		"before and after load balancing": {func(w world) {
			w.acl("n1", "from-lport allow 10 0", "ip4.dst == 10.96.0.1 && tcp.dst == 80")
			w.acl("n1", "from-lport-after allow 10 0", "ip4.dst == 10.128.2.3 && tcp.dst == 8080")
			w.acl("n2", "from-lport allow 10 0", "ip4.dst == 10.128.2.3")
		}, "a1", "a2", "10.96.0.1:80", "true after 6: n1 from-lport allow ip4.dst == 10.96.0.1 && tcp.dst == 80 void 0, n1 " +
			"from-lport after load balancing allow ip4.dst == 10.128.2.3 && tcp.dst == 8080 void 0, n2 from-lport allow " +
			"ip4.dst == 10.128.2.3 void 0"},
		"tiers": {func(w world) {
			w.acl("n1", "to-lport drop 10 2", "ip")
			w.acl("n1", "to-lport allow-related 5 1", "tcp")
			w.acl("n1", "to-lport drop 10 1", "udp")
		}, "a1", "b1", "", "true after 3: n1 to-lport allow-related tcp void 0"},
		"pass": {func(w world) {
			w.acl("n1", "to-lport pass 10 0", "ip")
			w.acl("n1", "to-lport allow 9 0", "ip")
			w.acl("n1", "to-lport drop 1 3", "ip4")
		}, "a1", "b1", "", "false after 3: n1 to-lport drop ip4 void 0"},
		"pass of the last tier": {func(w world) { w.acl("n1", "to-lport pass 10 3", "ip") }, "a1", "b1", "",
			"true after 3: "},
		"the same priority": {func(w world) {
			w.acl("n1", "to-lport drop 10 0", "ip4")
			w.acl("n1", "to-lport allow 10 0", "ip")
		}, "a1", "b1", "", "evaluating ACLs of switch n1: ACLs " + uuid("n1to-lport drop 10 0ip4") + " (drop) and " +
			uuid("n1to-lport allow 10 0ip") + " (allow) have priority 10 and match the same packet, want different priorities"},
		"the same priority and outcome": {func(w world) {
			w.acl("n1", "to-lport drop 10 0", "ip4")
			w.acl("n1", "to-lport drop 10 0", "ip4 && tcp")
		}, "a1", "b1", "", "false after 3: n1 to-lport drop ip4 void 0"},
		"a match that can't be read": {func(w world) { w.acl("n1", "to-lport drop 10 0", "ip4 && eth.src == 1") }, "a1",
			"b1", "", "evaluating ACL " + uuid("n1to-lport drop 10 0ip4 && eth.src == 1") + ` on switch n1: match "ip4 && ` +
				`eth.src == 1": at character 8: "eth.src" is not known, want a field or predicate that package verdict documents`},
		"unless another decides": {func(w world) {
			w.acl("n1", "to-lport drop 9 0", "nonsense")
			w.acl("n1", "to-lport drop 10 0", "ip")
		}, "a1", "b1", "", "false after 3: n1 to-lport drop ip void 0"},
		"no such port": {func(world) {}, "a1", "c1", "", "evaluating a connection: packet from 10.128.0.3 to invalid IP: " +
			"want two addresses of the same family"},
		"a service of the other family": {func(world) {}, "a1", "b1", "[fd02::1]:80",
			"evaluating a connection: packet from 10.128.0.3 to fd02::1: want two addresses of the same family"},
	} {
		t.Run(name, func(t *testing.T) {
			db := newWorld()
			test.build(db)
			p := connection(test.from, test.to, 0, verdict.TCP, 8080)
			if test.from == "" {
				p.Src = netip.MustParseAddr("192.0.2.1")
			}
			if test.to == "" {
				p.Dst = netip.MustParseAddr("192.0.2.1")
			}
			var service netip.AddrPort
			if test.service != "" {
				service = netip.MustParseAddrPort(test.service)
			}
			if have := text(t, db, p, service); have != test.want {
				t.Errorf("%s\nwant %s", have, test.want)
			}
		})
	}
}

func TestStage(t *testing.T) {
	db := newWorld()
	w := []string{db.acl("n1", "to-lport drop 10 0", "ip6"), db.acl("n1", "to-lport drop 9 0", "ip4 && outport == \"b1\"")}
	e := verdict.New(db)
	p := connection("a1", "b1", 0, verdict.TCP, 80)
	step, err := e.Stage(verdict.ToLport, "n1", p)
	if err != nil || step.Allowed || step.ACL.UUID != w[1] || step.Switch != "n1" || step.Stage != verdict.ToLport {
		t.Errorf("step %v, error %v", step, err)
	}
	for _, code := range []uint8{0, 1} { // OVN lets neighbor discovery pass, whose code is 0
		step, err = e.Stage(verdict.ToLport, "n1", verdict.Packet{Src: pods()["a1"][1], Dst: pods()["b1"][1],
			Protocol: verdict.ICMPv6, ICMPType: 135, ICMPCode: code})
		if err != nil || step.Allowed != (code == 0) {
			t.Errorf("neighbor solicitation of code %d: step %v, error %v", code, step, err)
		}
	}
	if _, err = e.Stage(verdict.ToLport, "n3", p); err == nil || !strings.Contains(err.Error(), `switch "n3"`) {
		t.Errorf("switch n3: error %v", err)
	}
	p.Src = netip.Addr{}
	if _, err = e.Stage(verdict.ToLport, "n1", p); err == nil || !strings.Contains(err.Error(), "invalid IP") {
		t.Errorf("no source: error %v", err)
	}
	p = connection("a1", "b1", 0, verdict.TCP, 80)
	p.Outport = "c9"
	if _, err = e.Connection(p, netip.AddrPort{}); err == nil || !strings.Contains(err.Error(), `port "c9"`) {
		t.Errorf("port c9: error %v", err)
	}
}

// A switch with two routers has no port that leads to the only one.
func TestSeveralRouters(t *testing.T) {
	db := newWorld()
	db.Put(&nbdb.LogicalSwitchPort{UUID: uuid("other"), Name: "other", Type: "router"})
	row := db.Row(nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: uuid("n1")}).(*nbdb.LogicalSwitch)
	row.Ports = append(slices.Clone(row.Ports), uuid("other"))
	db.Put(row)
	for _, port := range []string{"stor-n1", "other"} {
		db.acl("n1", "to-lport drop 10 0", fmt.Sprintf("outport == %q", port))
	}
	if have := text(t, db, connection("a1", "a2", 0, verdict.TCP, 80), netip.AddrPort{}); have != "true after 6: " {
		t.Error(have)
	}
}
