package nb_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// world is what somebody wants of a Northbound database: rows by owner.
type world map[nb.Owner][]nb.Row

func (w world) owners() []nb.Owner { return slices.SortedFunc(maps.Keys(w), nb.Owner.Compare) }

// generator makes random worlds over a small set of names, so that two of them share many rows and differ in many.
type generator struct {
	r *rand.Rand
	s *nb.Schema
}

// theSchema is one for all tests: reading it from the database's schema takes milliseconds.
var theSchema = sync.OnceValue(nb.NewSchema)

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 7)), theSchema()}
}

func (g generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g generator) pick(xs ...string) string { return xs[g.r.IntN(len(xs))] }

// some is a random part of xs in random order.
func (g generator) some(xs ...string) []string {
	var out []string
	for _, i := range g.r.Perm(len(xs)) {
		if g.chance(50) {
			out = append(out, xs[i])
		}
	}
	return out
}

func (g generator) options() map[string]string {
	if g.chance(20) {
		return nil
	}
	out := map[string]string{}
	for _, k := range g.some("a", "b", "c") {
		out[k] = g.pick("1", "2")
	}
	return out
}

// world makes a consistent world: what lists a row is there.
func (g generator) world() world {
	w := world{}
	router, group := g.cluster(w)
	g.meter(w)
	lbGroups := []nb.Ref{group}
	for _, z := range g.some("a", "b") {
		lbGroups = append(lbGroups, g.zone(w, z))
	}
	var switches, portGroups []nb.Ref
	for i := range 4 {
		if g.chance(75) {
			switches = append(switches, g.node(w, fmt.Sprintf("n%d", i), router, lbGroups...))
		}
	}
	for i := range 4 {
		if g.chance(75) {
			portGroups = append(portGroups, g.namespace(w, fmt.Sprintf("ns%d", i)))
		}
	}
	for i := range 8 {
		if len(switches) > 0 && g.chance(75) {
			g.pod(w, fmt.Sprintf("default/p%d", i), switches[g.r.IntN(len(switches))], portGroups...)
		}
	}
	for i := range 4 {
		if g.chance(75) {
			g.service(w, fmt.Sprintf("default/s%d", i), lbGroups[g.r.IntN(len(lbGroups))])
		}
		if g.chance(75) {
			g.policy(w, fmt.Sprintf("default/s%d", i), slices.Concat(switches, portGroups))
		}
	}
	return w
}

// someRefs is a random part of refs.
func (g generator) someRefs(refs []nb.Ref) []nb.Ref {
	return slices.DeleteFunc(slices.Clone(refs), func(nb.Ref) bool { return g.chance(50) })
}

func (g generator) add(w world, k nb.Key, m model.Model, listIn ...nb.Slot) {
	w[k.Owner] = append(w[k.Owner], g.s.NewRow(k, m, listIn...))
}

func key(table string, kind names.Kind, name, role string) nb.Key {
	return nb.Key{Table: table, Owner: nb.Owner{Kind: kind, Name: name}, Role: role}
}

func (g generator) cluster(w world) (router, group nb.Ref) {
	k := func(table, role string) nb.Key { return key(table, names.KindCluster, names.ClusterOwner, role) }
	router = nb.Ref{Table: nbdb.LogicalRouterTable, UUID: names.ClusterRow(nbdb.LogicalRouterTable, names.RoleRouter)}
	lbGroups := nbdb.LoadBalancerGroupTable
	group = nb.Ref{Table: lbGroups, UUID: names.ClusterRow(lbGroups, names.RoleLBGroup)}
	g.add(w, k(nbdb.LogicalRouterTable, names.RoleRouter), &nbdb.LogicalRouter{UUID: router.UUID, Name: g.pick("r", "ovn"),
		Options: g.options(), ExternalIDs: map[string]string{names.KeyClusterRouter: "yes"}})
	g.add(w, k(lbGroups, names.RoleLBGroup), &nbdb.LoadBalancerGroup{UUID: group.UUID, Name: names.ClusterLBGroup})
	return router, group
}

// meter is a row that refers to another of its owner, which goes with it.
func (g generator) meter(w world) {
	if g.chance(30) {
		return
	}
	k := func(table, role string) nb.Key { return key(table, names.KindCluster, names.ClusterOwner, role) }
	fair, band := g.chance(50), g.pick(names.RoleLogBand, names.RoleLogBand+"-2")
	bandUUID := names.ClusterRow(nbdb.MeterBandTable, band)
	g.add(w, k(nbdb.MeterTable, names.RoleLogMeter), &nbdb.Meter{
		UUID: names.ClusterRow(nbdb.MeterTable, names.RoleLogMeter), Name: names.LogMeter, Unit: nbdb.MeterUnitPktps,
		Fair: &fair, Bands: []string{bandUUID}})
	g.add(w, k(nbdb.MeterBandTable, band), &nbdb.MeterBand{UUID: bandUUID, Action: nbdb.MeterBandActionDrop,
		Rate: 1 + g.r.IntN(2)})
}

// zone is a load balancer group that switches may refer to, and that may go.
func (g generator) zone(w world, name string) nb.Ref {
	table := nbdb.LoadBalancerGroupTable
	group := nb.Ref{Table: table, UUID: names.ZoneRow(table, name, names.RoleLBGroup)}
	g.add(w, key(group.Table, names.KindZone, name, names.RoleLBGroup),
		&nbdb.LoadBalancerGroup{UUID: group.UUID, Name: names.ZoneLBGroup(name)})
	return group
}

func (g generator) node(w world, name string, router nb.Ref, groups ...nb.Ref) nb.Ref {
	uid := g.pick("u1", "u2") // a node may have been made anew
	k := func(table, role string) nb.Key { return key(table, names.KindNode, name, role) }
	sw := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: names.NodeRow(nbdb.LogicalSwitchTable, name, names.RoleSwitch, uid)}
	ls := &nbdb.LogicalSwitch{UUID: sw.UUID, Name: name, OtherConfig: g.options()}
	for _, group := range g.someRefs(groups) {
		ls.LoadBalancerGroup = append(ls.LoadBalancerGroup, group.UUID)
	}
	if g.chance(50) {
		ls.ExternalIDs = map[string]string{names.KeyGatewayIP: g.pick("10.0.0.1/24", "10.0.1.1/24")}
	}
	g.add(w, k(nbdb.LogicalSwitchTable, names.RoleSwitch), ls)
	g.add(w, k(nbdb.LogicalRouterPortTable, names.RoleRouterToNode), &nbdb.LogicalRouterPort{
		UUID: names.NodeRow(nbdb.LogicalRouterPortTable, name, names.RoleRouterToNode, uid), Name: names.RouterToSwitch(name),
		MAC: g.pick("0a:58:00:00:00:01", "0a:58:00:00:00:02"), Networks: g.some("10.0.0.1/24", "fd01::1/64"),
	}, nb.Slot{In: router, Column: "ports"})
	if g.chance(50) {
		g.add(w, k(nbdb.LogicalRouterPolicyTable, names.RoleReply), &nbdb.LogicalRouterPolicy{
			UUID: names.NodeRow(nbdb.LogicalRouterPolicyTable, name, names.RoleReply, uid), Priority: names.PolicyReply,
			Match: g.pick("ip4.src == 10.0.0.3", "ip4.src == 10.0.0.4"), Action: nbdb.LogicalRouterPolicyActionReroute,
			Nexthops: g.some("10.0.0.2", "10.0.1.2"),
		}, nb.Slot{In: router, Column: "policies"})
	}
	var policy *string
	if g.chance(50) {
		p := g.pick("src-ip", "dst-ip")
		policy = &p
	}
	g.add(w, k(nbdb.LogicalRouterStaticRouteTable, names.RoleEgress), &nbdb.LogicalRouterStaticRoute{
		UUID: names.NodeRow(nbdb.LogicalRouterStaticRouteTable, name, names.RoleEgress, uid), IPPrefix: "10.0.0.0/24",
		Nexthop: g.pick("10.0.0.2", "10.0.0.3"), Policy: policy,
	}, nb.Slot{In: router, Column: "static_routes"})
	return sw
}

func (g generator) pod(w world, name string, sw nb.Ref, groups ...nb.Ref) {
	uid := g.pick("u1", "u2")
	slots := []nb.Slot{{In: sw, Column: "ports"}}
	for _, group := range g.someRefs(groups) {
		slots = append(slots, nb.Slot{In: group, Column: "ports"})
	}
	g.add(w, key(nbdb.LogicalSwitchPortTable, names.KindPod, name, names.RolePort), &nbdb.LogicalSwitchPort{
		UUID: names.RowUUID(nbdb.LogicalSwitchPortTable, names.KindPod, name, names.RolePort, uid),
		Name: strings.ReplaceAll(name, "/", "_"), Addresses: g.some("a", "b"),
		PortSecurity: g.some("a", "b"), Options: g.options(),
		ExternalIDs: map[string]string{names.KeyPod: "true"},
	}, slots...)
	for _, direction := range g.some("from-lport", "to-lport") {
		g.add(w, key(nbdb.QoSTable, names.KindPod, name, direction), &nbdb.QoS{
			UUID: names.RowUUID(nbdb.QoSTable, names.KindPod, name, direction, uid), Direction: direction,
			Match: name + direction, Priority: 1 + g.r.IntN(2), Bandwidth: g.bandwidth(),
		}, nb.Slot{In: sw, Column: "qos_rules"})
	}
}

func (g generator) bandwidth() map[string]int {
	out := map[string]int{}
	for _, k := range g.some("rate", "burst") {
		out[k] = 1 + g.r.IntN(2)
	}
	return out
}

func (g generator) service(w world, name string, group nb.Ref) {
	for _, proto := range g.some("tcp", "udp", "sctp") {
		g.add(w, key(nbdb.LoadBalancerTable, names.KindService, name, proto), &nbdb.LoadBalancer{
			UUID: names.RowUUID(nbdb.LoadBalancerTable, names.KindService, name, proto, ""), Name: name + proto,
			Protocol: &proto, Vips: g.options(), Options: g.options(), SelectionFields: g.some("ip_src", "ip_dst"),
		}, nb.Slot{In: group, Column: "load_balancer"})
	}
}

// policy is ACLs of one owner, each in switches and port groups of others.
func (g generator) policy(w world, name string, in []nb.Ref) {
	for _, role := range g.some("ingress:0", "ingress:1", "egress:0") {
		var slots []nb.Slot
		for _, r := range g.someRefs(in) {
			slots = append(slots, nb.Slot{In: r, Column: "acls"})
		}
		if len(slots) == 0 {
			continue // nothing would keep it
		}
		acl := &nbdb.ACL{UUID: names.RowUUID(nbdb.ACLTable, names.KindService, name, role, ""), Match: name + role,
			Priority: g.r.IntN(2), Direction: g.pick("to-lport", "from-lport"), Action: g.pick("allow", "drop"),
			Log: g.chance(50), Label: g.r.IntN(2), Tier: g.r.IntN(2)}
		if severity := g.pick("alert", "info"); acl.Log {
			acl.Name, acl.Severity, acl.Meter = &role, &severity, &name
		}
		g.add(w, key(nbdb.ACLTable, names.KindService, name, role), acl, slots...)
	}
}

// namespace is an address set and a port group.
func (g generator) namespace(w world, name string) nb.Ref {
	g.add(w, key(nbdb.AddressSetTable, names.KindNamespace, name, "v4"), &nbdb.AddressSet{
		UUID: names.RowUUID(nbdb.AddressSetTable, names.KindNamespace, name, "v4", ""), Name: name,
		Addresses: g.some("1.1.1.1", "2.2.2.2", "3.3.3.3")})
	uid := g.pick("u1", "u2")
	group := nb.Ref{Table: nbdb.PortGroupTable,
		UUID: names.RowUUID(nbdb.PortGroupTable, names.KindNamespace, name, "group", uid)}
	g.add(w, key(group.Table, names.KindNamespace, name, "group"), &nbdb.PortGroup{UUID: group.UUID, Name: "sel_" + name})
	return group
}

// shuffled is the same world in another order.
func (g generator) shuffled(w world) world {
	out := world{}
	for o, rows := range w {
		rows = slices.Clone(rows)
		g.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		out[o] = rows
	}
	return out
}

// database is a view that knows the owners of what is there.
type database interface {
	nb.View
	Owners() []nb.Owner
}

// plans compares db with all of w, and with what else db says is ours.
func plans(t *testing.T, s *nb.Schema, db database, w world) []nb.Plan {
	t.Helper()
	owners := append(w.owners(), db.Owners()...)
	slices.SortFunc(owners, nb.Owner.Compare)
	var out []nb.Plan
	scope := nb.Scope{}
	for _, o := range slices.Compact(owners) {
		p, err := s.Plan(db, o, w[o], scope)
		if err != nil {
			t.Fatalf("plan of %s: %v", o, err)
		}
		if !p.Empty() {
			out = append(out, p)
		}
	}
	return out
}

func applyAll(t *testing.T, db *nb.Database, ps []nb.Plan) {
	t.Helper()
	if err := db.Apply(ps...); err != nil {
		t.Fatal(err)
	}
}

func built(t *testing.T, s *nb.Schema, w world) *nb.Database {
	t.Helper()
	db := nb.NewDatabase(s)
	applyAll(t, db, plans(t, s, db, w))
	return db
}

func text(ps []nb.Plan) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
	}
	return b.String()
}

// dump is a database as text: every row with every column that is not empty, sets in order.
func dump(s *nb.Schema, db *nb.Database) string {
	var lines []string
	for _, table := range s.Tables() {
		for _, m := range db.Rows(table) {
			lines = append(lines, table+" "+row(m))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func row(m model.Model) string {
	v := reflect.ValueOf(m).Elem()
	var cols []string
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		if l, ok := f.Interface().([]string); ok {
			f = reflect.ValueOf(slices.Sorted(slices.Values(l)))
		}
		if f.IsZero() || (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 {
			continue
		}
		cols = append(cols, fmt.Sprintf("%s=%v", v.Type().Field(i).Tag.Get("ovsdb"), f.Interface()))
	}
	return strings.Join(cols, " ")
}
