package ovsdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// connected is a session with a real server, which ends with the test.
func connected(t *testing.T, remote string, schema *nb.Schema) *ovsdb.Session {
	t.Helper()
	db := ovsdb.New(config.OVSDB{Addresses: []string{remote}}, schema, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		db.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	deadline := time.After(20 * time.Second)
	for db.Session() == nil {
		select {
		case <-db.Signal():
		case <-deadline:
			t.Fatalf("no session: %v", db.Failure())
		}
	}
	return db.Session()
}

// randomObjects is a cluster over a small set of names; nodes and pods may have been made anew or moved since the last
// one.
func randomObjects(r *rand.Rand) []cluster.Object {
	some := func(percent int) bool { return r.IntN(100) < percent }
	uid := func() string { return fmt.Sprintf("uid-%d", r.IntN(2)) }
	name := func(prefix string, i int) cluster.Name {
		return cluster.Name{Namespace: fmt.Sprintf("ns%d", i%2), Name: fmt.Sprintf("%s%d", prefix, i)}
	}
	var out []cluster.Object
	for i := range 4 {
		if some(75) {
			out = append(out, &cluster.Node{Name: fmt.Sprintf("n%d", i), UID: uid(), ChassisID: fmt.Sprintf("c%d", r.IntN(2))})
		}
	}
	for i := range 2 {
		if some(75) {
			out = append(out, &cluster.Namespace{Name: fmt.Sprintf("ns%d", i), UID: uid()})
		}
	}
	for i := range 20 {
		if some(75) {
			out = append(out, &cluster.Pod{Name: name("p", i), UID: uid(), Node: fmt.Sprintf("n%d", r.IntN(4)),
				Bandwidth: cluster.Bandwidth{Ingress: uint64(r.IntN(3)) * 1_000_000, Egress: uint64(r.IntN(3)) * 1_000}})
		}
	}
	for i := range 5 {
		if !some(75) {
			continue
		}
		vip := netip.AddrFrom4([4]byte{10, 96, 0, byte(i)})
		backend := netip.AddrFrom4([4]byte{10, 128, 0, byte(3 + r.IntN(5))})
		s := &cluster.Service{Name: name("s", i), UID: uid(), ClusterIPs: []netip.Addr{vip}}
		for _, p := range []cluster.Protocol{cluster.TCP, cluster.UDP, cluster.SCTP} {
			if some(60) {
				s.Ports = append(s.Ports, cluster.ServicePort{Protocol: p, Port: uint16(80 + r.IntN(3))})
			}
		}
		out = append(out, s, &cluster.EndpointSlice{Name: name("s", i), Service: s.Name.Name,
			Ports:     []cluster.EndpointPort{{Protocol: cluster.TCP, Port: 8080}},
			Endpoints: []cluster.Endpoint{{Addr: backend, Conditions: cluster.Ready}}})
	}
	return out
}

// derivedOnly has every row come back under its derived UUID at once, as a database in memory does: no ovn-northd is
// watching here.
type derivedOnly struct{ nb.View }

// Spent implements nb.View.
func (derivedOnly) Spent(nb.Ref) bool { return false }

// wanted is the rows that a cluster wants, by owner.
func wanted(t *testing.T, c *offline.Cluster) map[nb.Owner][]nb.Row {
	t.Helper()
	out := map[nb.Owner][]nb.Row{}
	for _, o := range c.Owners() {
		rows, err := c.Rows(o)
		if err != nil {
			t.Fatal(err)
		}
		out[o] = rows.Rows
	}
	return out
}

// planned compares a view with what is wanted, and with what else is there of ours.
func planned(t *testing.T, want map[nb.Owner][]nb.Row, schema *nb.Schema, v nb.View, there []nb.Owner) []nb.Plan {
	t.Helper()
	owners := append(slices.Collect(maps.Keys(want)), there...)
	slices.SortFunc(owners, nb.Owner.Compare)
	var out []nb.Plan
	scope := nb.Scope{}
	for _, o := range slices.Compact(owners) {
		p, err := schema.Plan(v, o, want[o], scope)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Empty() {
			out = append(out, p)
		}
	}
	return out
}

func text(plans []nb.Plan) string {
	var b strings.Builder
	for _, p := range plans {
		b.WriteString(p.String())
	}
	return b.String()
}

// A database in memory behaves as a real one: the same plans come out of both, and lead to the same content. So what is
// proven of plans in memory holds.
func TestMemoryBehavesAsTheServer(t *testing.T) {
	for ovn, file := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 13))
			remote, schema := testkit.StartOVSDB(t, file), nb.NewSchema()
			session, memory := connected(t, remote, schema), nb.NewDatabase(schema)
			for round := range 40 {
				want := wanted(t, offline.New(config.DefaultCluster(), randomObjects(r)))
				real := planned(t, want, schema, derivedOnly{session.View()}, session.Owners())
				inMemory := planned(t, want, schema, memory, memory.Owners())
				if a, b := text(real), text(inMemory); a != b {
					t.Fatalf("round %d: the plan from the server's content\n%s\nfrom memory\n%s", round, a, b)
				}
				out, err := session.Transact(t.Context(), real)
				if err != nil || len(out.Lost) != 0 {
					t.Fatalf("round %d: %v, lost %v\n%s", round, err, out.Lost, text(real))
				}
				if err := memory.Apply(inMemory...); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if again := planned(t, want, schema, derivedOnly{session.View()}, session.Owners()); len(again) != 0 {
					t.Fatalf("round %d: a plan after the transaction:\n%s", round, text(again))
				}
				if a, b := serverContent(t, remote, schema), memoryContent(t, schema, memory); a != b {
					t.Fatalf("round %d: the server holds\n%s\nmemory\n%s", round, a, b)
				}
			}
		})
	}
}

// memoryContent is the rows of a database in memory, one a line.
func memoryContent(t *testing.T, schema *nb.Schema, db *nb.Database) string {
	t.Helper()
	var b strings.Builder
	if err := show.Write(&b, show.JSON, schema, db); err != nil {
		t.Fatal(err)
	}
	var tables map[string][]map[string]any
	if err := json.Unmarshal([]byte(b.String()), &tables); err != nil {
		t.Fatal(err)
	}
	return lines(tables)
}

// serverContent is the same of a server, read without our client.
func serverContent(t *testing.T, remote string, schema *nb.Schema) string {
	t.Helper()
	request := []any{"OVN_Northbound"}
	for _, table := range schema.Tables() {
		request = append(request, map[string]any{"op": "select", "table": table, "where": []any{}})
	}
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct{ Rows []map[string]any }
	answer := testkit.Run(t, "ovsdb-client", "transact", remote, string(raw))
	if err := json.Unmarshal([]byte(answer), &results); err != nil {
		t.Fatal(err)
	}
	tables := map[string][]map[string]any{}
	for i, table := range schema.Tables() {
		for _, row := range results[i].Rows {
			delete(row, "_version")
			for c, v := range row {
				if row[c] = plain(v); row[c] == nil {
					delete(row, c)
				}
			}
			tables[table] = append(tables[table], row)
		}
	}
	return lines(tables)
}

// plain turns a value of the wire (RFC 7047 section 5.1) into the form of show.JSON; nil when it is empty.
func plain(v any) any {
	l, isList := v.([]any)
	if !isList {
		if v == "" || v == float64(0) || v == false {
			return nil
		}
		return v
	}
	switch l[0] {
	case "uuid":
		return l[1]
	case "set":
		var out []any
		for _, x := range l[1].([]any) {
			out = append(out, plain(x))
		}
		if out == nil {
			return nil
		}
		return out
	default: // a map
		out := map[string]any{}
		for _, p := range l[1].([]any) {
			out[p.([]any)[0].(string)] = p.([]any)[1]
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
}

func lines(tables map[string][]map[string]any) string {
	var out []string
	for table, rows := range tables {
		for _, row := range rows {
			var cols []string
			for c, v := range row {
				cols = append(cols, fmt.Sprintf("%s=%v", c, members(v)))
			}
			slices.Sort(cols)
			out = append(out, table+" "+strings.Join(cols, " "))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// members is a set in order; a set of one is that one, as on the wire.
func members(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	var out []string
	for _, x := range l {
		out = append(out, fmt.Sprint(x))
	}
	slices.Sort(out)
	if len(out) == 1 {
		return out[0]
	}
	return out
}
