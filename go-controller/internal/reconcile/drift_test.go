package reconcile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os/exec"
	"reflect"
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
	minDrifts   = 100 // kinds of drift that the test must find at least
	driftRounds = 3   // how often each is tried
)

// row is a row as ovsdb-client prints it (RFC 7047 section 5.1).
type row map[string]any

func (r row) uuid() string { return r["_uuid"].([]any)[1].(string) }

// role is what the mark of a row says of its place; "" without a mark.
func (r row) role() string {
	for _, pair := range r["external_ids"].([]any)[1].([]any) {
		if p := pair.([]any); p[0] == "k8s.ovn.org/role" {
			return p[1].(string)
		}
	}
	return ""
}

// drift is a kind of damage, and the operations that do it to a row.
type drift struct {
	what       string
	operations func(tables map[string][]row, of row) []any
}

// driftBed is a loop with rows of every table.
type driftBed struct {
	*bed
	relay  *relay
	tables map[string][]row // at the last look
	text   string           // what they have, without the order of rows, and UUIDs
}

// TestEveryDriftIsRepaired does to a row of each role what can be done to it: the row is deleted, or a column of it is
// emptied. Columns that list other rows are among them.
func TestEveryDriftIsRepaired(t *testing.T) {
	b := newDriftBed(t)
	var took []time.Duration
	var worst string
	kinds, refused := 0, 0
	for table, rows := range b.look() {
		seen := map[string]bool{}
		for _, r := range rows {
			role := r.role()
			if role == "" || seen[role] || table == "NB_Global" {
				continue // not ours, or it tells whose the database is: see TestAnotherCluster
			}
			seen[role] = true
			for _, d := range driftsOf(table, role, r) {
				for range driftRounds {
					took1, ok := b.try(table, role, d)
					if !ok {
						refused++
						break
					}
					if took = append(took, took1); took1 == slices.Max(took) {
						worst = d.what
					}
				}
				kinds++
			}
		}
	}
	slices.Sort(took)
	t.Logf("%d kinds of drift, of which the server refused %d; the others were repaired %d times each, p50 after %s, the "+
		"slowest after %s: %s", kinds, refused, driftRounds, took[len(took)/2], took[len(took)-1], worst)
	if kinds-refused < minDrifts {
		t.Errorf("%d kinds of drift, want %d or more", kinds-refused, minDrifts)
	}
}

func newDriftBed(t *testing.T) *driftBed {
	objects := append(someCluster(), gatewayNode("n1", "172.18.0.3/16"))
	near := node("n2")
	objects = append(objects, near)
	for i := range 2 {
		ns := teamNamespace(i, i)
		p := appPod(ns.Name, i, 0)
		p.Node = "n1"
		objects = append(objects, ns, appPolicy(ns.Name, 0), p)
	}
	network := &cluster.Network{Name: names.Defined("default", "lan"), Topology: cluster.Layer2,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/24")}}}
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
	r := startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]))
	testkit.Run(t, "ovn-nbctl", "--db="+r.Remote, "init")
	quiet := Config{Log: slog.New(slog.DiscardHandler)}
	b := &driftBed{bed: newBedOf(t, r.Remote, newFeed(objects...), c, quiet), relay: r}
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
				lines = append(lines, anyUUID().ReplaceAllString(line, "UUID"))
			}
		}
	}
}

// driftsOf is what can be done to a row.
func driftsOf(table, role string, r row) (out []drift) {
	what := table + " " + role
	out = append(out, drift{what + " is deleted", func(tables map[string][]row, of row) []any {
		ops := unlisted(tables, of.uuid())
		return append(ops, map[string]any{"op": "delete", "table": table, "where": whose(of)})
	}})
	for _, column := range slices.Sorted(func(yield func(string) bool) {
		for c := range r {
			if !yield(c) {
				return
			}
		}
	}) {
		empty := emptied(r[column])
		if strings.HasPrefix(column, "_") || reflect.DeepEqual(empty, r[column]) {
			continue
		}
		out = append(out, drift{what + ": " + column + " is emptied", func(_ map[string][]row, of row) []any {
			return []any{map[string]any{"op": "update", "table": table, "where": whose(of), "row": row{column: empty}}}
		}})
	}
	return out
}

// emptied is the default of a column with this value.
func emptied(value any) any {
	switch v := value.(type) {
	case string:
		return ""
	case float64:
		return 0.0
	case bool:
		return false
	case []any:
		if v[0] == "map" {
			return []any{"map", []any{}}
		}
	}
	return []any{"set", []any{}}
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

// try does damage to a row of a role, and waits until it is repaired. The time is that until the last transaction of
// the repair was answered. It is false if the server refuses to do this to the row.
func (b *driftBed) try(table, role string, d drift) (took time.Duration, ok bool) {
	b.t.Helper()
	want, tables := b.text, b.tables
	of := tables[table][slices.IndexFunc(tables[table], func(r row) bool { return r.role() == role })]
	request, err := json.Marshal(append([]any{"OVN_Northbound"}, d.operations(tables, of)...))
	if err != nil {
		b.t.Fatal(err)
	}
	answered := len(b.relay.Wire().Transactions)
	var errs bytes.Buffer
	cmd := exec.CommandContext(b.t.Context(), "ovsdb-client", "transact", "unix:"+b.relay.server, string(request))
	cmd.Stderr = &errs
	answer, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%s: %v: %s", d.what, err, errs.String())
	}
	if strings.Contains(string(answer), `"error"`) {
		return 0, false
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
			b.t.Fatalf("%s: it is not repaired: there are\n%s\nand not\n%s", d.what,
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
