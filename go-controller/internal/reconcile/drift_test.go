package reconcile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	driftRounds = 3 // how often each kind of damage is tried
	repairPage  = "../../../docs/features/repair.md"
)

// row is a row as ovsdb-client prints it (RFC 7047 section 5.1).
type row map[string]any

func (r row) uuid() string { return r["_uuid"].([]any)[1].(string) }

// marks is what our marks of a row say: its owner, and its role. It is the same when the row is made anew.
func (r row) marks() (marks map[string]string) {
	marks = map[string]string{}
	for _, pair := range r["external_ids"].([]any)[1].([]any) {
		if p := pair.([]any); strings.HasPrefix(p[0].(string), "k8s.ovn.org/") {
			marks[p[0].(string)] = p[1].(string)
		}
	}
	return marks
}

// way is the operations that do damage to a row; none if they would do none.
type way func(tables map[string][]row, of row) []any

// drift is a kind of damage to a row, and the ways to do it: the first that the server accepts is taken.
type drift struct {
	what string
	ways []way
}

// driftBed is a loop on a server, and what its database has.
type driftBed struct {
	*bed
	relay  *relay
	uuids  *regexp.Regexp
	tables map[string][]row // at the last look
	text   string           // what they have, without the order of rows, and UUIDs
}

// TestEveryDriftIsRepaired does to a row of each role what can be done to it: the row is deleted, or a column of it is
// emptied. Columns that list other rows are among them. The page has the numbers.
func TestEveryDriftIsRepaired(t *testing.T) {
	b := newDriftBed(t)
	var took []time.Duration
	var worst string
	accepted, refused, roles := 0, 0, map[string]bool{}
	tables := b.look()
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, r := range tables[table] {
			marks := r.marks()
			role := table + " " + marks["k8s.ovn.org/role"]
			if marks["k8s.ovn.org/role"] == "" || roles[role] || table == "NB_Global" {
				continue // not ours, or it tells whose the database is: see TestAnotherCluster
			}
			roles[role] = true
			for _, d := range driftsOf(table, role, r) {
				times := b.tryAll(table, marks, d)
				if len(times) == 0 {
					refused++
					continue
				}
				accepted++
				if took = append(took, times...); slices.Max(times) == slices.Max(took) {
					worst = d.what
				}
			}
		}
	}
	if slices.Sort(took); len(took) != accepted*driftRounds || accepted == 0 {
		t.Fatalf("%d kinds of damage were done %d times, want each %d times", accepted, len(took), driftRounds)
	}
	t.Logf("%d kinds of damage to rows of %d roles, and %d that the server refuses. They were repaired %d times each, "+
		"p50 after %s, the slowest after %s: %s", accepted, len(roles), refused, driftRounds, took[len(took)/2],
		took[len(took)-1], worst)
	page, err := os.ReadFile(repairPage)
	for _, want := range []string{fmt.Sprintf("each of %d roles", len(roles)), fmt.Sprintf("%d kinds of", accepted)} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s lacks %q: %v", repairPage, want, err)
		}
	}
}

func newDriftBed(t *testing.T) *driftBed {
	objects := append(someCluster(), gatewayNode("n1", "172.18.0.3/16"))
	for i := range 2 {
		ns := teamNamespace(i, i)
		p := appPod(ns.Name, i, 0)
		p.Node = "n1"
		objects = append(objects, ns, appPolicy(ns.Name, 0), p)
	}
	network := &cluster.Network{Name: names.Defined("default", "lan"), Topology: cluster.Layer2,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")}}}
	tenants := &cluster.Network{Name: names.Defined("red", "own"), Topology: cluster.Layer2, Primary: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")}}}
	if err := tenants.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/24")}); err != nil {
		t.Fatal(err)
	}
	tenant := pod("a", "n1")
	tenant.Name.Namespace = "red"
	objects = append(objects, tenant,
		&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "red", Name: "own"}, UID: "own", Network: tenants},
		&cluster.Namespace{Name: "red", UID: "red", Labels: cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})},
		&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "ns00", Name: "out"}, UID: "out",
			Egress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPeer: true, AnyPort: true}}}})
	attached := pod("attached", "n1")
	attached.Attachments = []cluster.Attachment{{Network: network.Name, Interface: "net1"}}
	objects = append(objects, attached,
		&cluster.NetworkDefinition{Name: cluster.Name{Namespace: "default", Name: "lan"}, UID: "lan", Network: network},
		&cluster.TieredPolicy{Name: "tier", UID: "tier", Tier: cluster.AdminTier,
			Pods: cluster.PodSelector{Namespaces: labelled("team", 1)},
			Ingress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: cluster.PolicyRule{AnyPort: true,
				Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{Namespaces: labelled("team", 7)}}}}}}})
	c := bedConfig()
	c.Multitenant = true
	r := startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), nil)
	testkit.Run(t, "ovn-nbctl", "--db="+r.Remote, "init")
	quiet := Config{Log: slog.New(slog.DiscardHandler)}
	b := &driftBed{bed: newBedOf(t, r.Remote, newFeed(objects...), c, quiet), relay: r, uuids: anyUUID()}
	b.inSync()
	return b
}

// look reads the rows of every table.
func (b *driftBed) look() map[string][]row {
	b.t.Helper()
	b.tables = map[string][]row{}
	var lines []string
	text := json.NewDecoder(strings.NewReader(
		testkit.Run(b.t, "ovsdb-client", "-f", "json", "dump", b.remote, "OVN_Northbound")))
	for {
		var table struct {
			Caption  string
			Headings []string
			Data     [][]any
		}
		if err := text.Decode(&table); err == io.EOF {
			slices.Sort(lines)
			b.text = strings.Join(lines, "\n")
			return b.tables
		} else if err != nil {
			b.t.Fatal(err)
		}
		name := strings.TrimSuffix(table.Caption, " table")
		for _, values := range table.Data {
			r := row{}
			for i, column := range table.Headings {
				r[column] = values[i]
			}
			line := name + " " + fmt.Sprint(r) // keys are sorted
			if _, marked := r["external_ids"]; marked && !strings.Contains(line, names.FreedAddressSet) {
				b.tables[name] = append(b.tables[name], r)
				lines = append(lines, b.uuids.ReplaceAllString(line, "UUID"))
			}
		}
	}
}

// driftsOf is what can be done to a row.
func driftsOf(table, role string, r row) (out []drift) {
	out = append(out, drift{role + " is deleted", []way{func(tables map[string][]row, of row) []any {
		ops := unlisted(tables, of.uuid())
		return append(ops, map[string]any{"op": "delete", "table": table, "where": whose(of)})
	}}})
	for _, column := range slices.Sorted(maps.Keys(r)) {
		d := drift{what: role + ": " + column + " is emptied"}
		for _, value := range emptied(r[column]) {
			d.ways = append(d.ways, func(_ map[string][]row, of row) []any {
				if reflect.DeepEqual(of[column], value) {
					return nil // it would be no damage
				}
				return []any{map[string]any{"op": "update", "table": table, "where": whose(of), "row": row{column: value}}}
			})
		}
		if !strings.HasPrefix(column, "_") && len(d.ways) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// emptied is what may stand for nothing in a column with this value; none if it has nothing. Of a set of one, JSON has
// the element alone.
func emptied(value any) []any {
	nothing := []any{"set", []any{}}
	switch v := value.(type) {
	case []any:
		if v[0] == "map" {
			nothing = []any{"map", []any{}}
		}
		if reflect.DeepEqual(v, nothing) {
			return nil
		}
		return []any{nothing}
	default:
		zero := reflect.Zero(reflect.TypeOf(value)).Interface()
		if zero == value {
			return nil
		}
		return []any{nothing, zero}
	}
}

func whose(r row) []any { return []any{[]any{"_uuid", "==", r["_uuid"]}} }

// unlisted takes a row out of all others that list it.
func unlisted(tables map[string][]row, uuid string) (ops []any) {
	for table, rows := range tables {
		for _, r := range rows {
			for column, value := range r {
				if column != "_uuid" && strings.Contains(fmt.Sprint(value), "uuid "+uuid) {
					ops = append(ops, map[string]any{"op": "mutate", "table": table, "where": whose(r),
						"mutations": []any{[]any{column, "delete", []any{"set", []any{[]any{"uuid", uuid}}}}}})
				}
			}
		}
	}
	return ops
}

// tryAll does damage to the row with these marks, a few times. The result is how long it took until each was repaired;
// none if the server refuses all ways to do it.
func (b *driftBed) tryAll(table string, marks map[string]string, d drift) (took []time.Duration) {
	b.t.Helper()
	for i, way := range d.ways {
		for range driftRounds {
			one, ok := b.try(table, marks, d.what, way, i == len(d.ways)-1)
			if !ok {
				break
			}
			took = append(took, one)
		}
		if len(took) > 0 {
			break
		}
	}
	return took
}

// try does damage in one way, and waits until it is repaired. The time is that until the last transaction of the repair
// was answered. It is false if the server refuses it: if that is the last way, only because of what the row means.
func (b *driftBed) try(table string, marks map[string]string, what string,
	damage way, isLast bool,
) (took time.Duration, ok bool) {
	b.t.Helper()
	want := b.text
	i := slices.IndexFunc(b.tables[table], func(r row) bool { return maps.Equal(r.marks(), marks) })
	if i < 0 {
		b.t.Fatalf("%s: there is no such row any more", what)
	}
	operations := damage(b.tables, b.tables[table][i])
	if len(operations) == 0 {
		b.t.Fatalf("%s: the row has nothing to be emptied any more", what)
	}
	request, err := json.Marshal(append([]any{"OVN_Northbound"}, operations...))
	if err != nil {
		b.t.Fatal(err)
	}
	answered := len(b.relay.Wire().Transactions)
	var errs bytes.Buffer
	cmd := exec.CommandContext(b.t.Context(), "ovsdb-client", "transact", "unix:"+b.relay.server, string(request))
	cmd.Stderr = &errs
	out, err := cmd.Output()
	answer := string(out)
	switch refused := strings.Contains(answer, `"error"`); {
	case err != nil:
		b.t.Fatalf("%s: %v: %s", what, err, errs.String())
	case refused && isLast && !strings.Contains(answer, "constraint violation"):
		b.t.Fatalf("%s: %s", what, answer)
	case refused:
		return 0, false
	case strings.Contains(answer, `"count":0`):
		b.t.Fatalf("%s: no row was changed: %s", what, answer)
	}
	begun := time.Now()
	last := begun
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for looked := begun; ; <-tick.C {
		if now := len(b.relay.Wire().Transactions); now > answered {
			answered, last = now, time.Now()
		} else if time.Since(looked) < 20*time.Millisecond || last.Equal(begun) && time.Since(begun) < time.Second {
			continue
		}
		looked = time.Now()
		if b.look(); b.text == want {
			return last.Sub(begun), true
		} else if time.Since(begun) > deadline {
			b.t.Fatalf("%s: it is not repaired: there are\n%s\nand not\n%s", what,
				without(b.text, want), without(want, b.text))
		}
	}
}

// without is the lines of one text that another does not have.
func without(text, other string) string {
	lines := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
		return slices.Contains(lines, l)
	}), "\n")
}
