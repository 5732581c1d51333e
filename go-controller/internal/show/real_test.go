package show_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// served starts an ovsdb-server on the file that Write makes.
func served(t *testing.T, s *nb.Schema, db *nb.Database) (remote string) {
	t.Helper()
	return testkit.ServeOVSDB(t, printed(t, show.OVSDB, s, db), "")
}

func nbctl(t *testing.T, remote string, args ...string) string {
	t.Helper()
	return testkit.Run(t, "ovn-nbctl", append([]string{"--no-leader-only", "--db=" + remote}, args...)...)
}

// ovsdb-server opens the file, and ovn-nbctl prints the same bytes for it as we do, except for the order of switches
// and of their ports: ovn-nbctl's order is that of a hash table.
func TestTextIsWhatOVNShows(t *testing.T) {
	s, db := sample(t)
	ours := printed(t, show.Text, s, db)
	theirs := withoutLLA(nbctl(t, served(t, s, db), "show"))
	if ours == "" || len(ours) != len(theirs) {
		t.Errorf("%d bytes, ovn-nbctl has %d", len(ours), len(theirs))
	}
	if a, b := inOrder(ours), inOrder(theirs); a != b {
		t.Errorf("ours:\n%s\novn-nbctl's:\n%s", a, b)
	}
}

// withoutLLA drops the lines that only ovn-nbctl of OVN 25.03 and later prints.
func withoutLLA(text string) string {
	return regexp.MustCompile(`(?m)^        ipv6-lla: ".*"\n`).ReplaceAllString(text, "")
}

// inOrder sorts the output of `show`: blocks by their first lines, and recursively the indented blocks within.
func inOrder(text string) string {
	return strings.Join(sortedBlocks(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), ""), "\n")
}

func sortedBlocks(lines []string, indent string) []string {
	var blocks []string
	for i := 0; i < len(lines); {
		j := i + 1
		for j < len(lines) && strings.HasPrefix(lines[j], indent+"    ") {
			j++
		}
		block := []string{lines[i]}
		if body := lines[i+1 : j]; indent == "" {
			block = append(block, sortedBlocks(body, indent+"    ")...)
		} else {
			block = append(block, body...) // the order of a port's lines is part of the format
		}
		blocks = append(blocks, strings.Join(block, "\n"))
		i = j
	}
	slices.Sort(blocks)
	return blocks
}

// content returns all rows of a server in the tables that we use. UUIDs are replaced by the names of their rows.
func content(t *testing.T, s *nb.Schema, remote string) string {
	t.Helper()
	var tables []map[string]any
	labels := map[string]string{}
	type table struct {
		name string
		rows [][]any
		head []string
	}
	var all []table
	for _, name := range s.Tables() {
		var out struct {
			Headings []string
			Data     [][]any
		}
		if err := json.Unmarshal([]byte(nbctl(t, remote, "--format=json", "list", name)), &out); err != nil {
			t.Fatalf("listing %s: %v", name, err)
		}
		all = append(all, table{name, out.Data, out.Headings})
		for _, r := range out.Data {
			row := map[string]any{}
			for i, h := range out.Headings {
				row[h] = r[i]
			}
			uuid := row["_uuid"].([]any)[1].(string)
			id, _ := json.Marshal(row["external_ids"])
			labels[uuid] = fmt.Sprintf("<%s %v %s>", name, row["name"], id)
			tables = append(tables, row)
		}
	}
	if len(tables) == 0 {
		t.Fatal("the database is empty")
	}
	var lines []string
	for _, tb := range all {
		for _, r := range tb.rows {
			var cols []string
			for i, h := range tb.head {
				cols = append(cols, h+"="+withLabels(r[i], labels))
			}
			slices.Sort(cols)
			lines = append(lines, tb.name+" "+strings.Join(cols, " "))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// withLabels prints a value of ovn-nbctl's JSON as text, with sorted sets.
func withLabels(v any, labels map[string]string) string {
	l, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if len(l) == 2 {
		switch l[0] {
		case "uuid":
			return labels[l[1].(string)]
		case "set", "map":
			var out []string
			for _, x := range l[1].([]any) {
				out = append(out, withLabels(x, labels))
			}
			slices.Sort(out)
			return fmt.Sprint(out)
		}
	}
	return fmt.Sprint(l...)
}

// The script creates the same content as the file in an empty database, of each OVN release.
func TestScriptMakesTheContent(t *testing.T) {
	s, db := sample(t)
	group := &nbdb.PortGroup{UUID: "11111111-1111-4111-8111-111111111111", Name: "group"}
	acl := &nbdb.ACL{
		UUID: "22222222-2222-4222-8222-222222222222", Match: "inport == @group", Action: "drop", Direction: "from-lport",
	}
	for _, m := range db.Rows(nbdb.LogicalSwitchPortTable) {
		group.Ports = append(group.Ports, s.Ref(m).UUID)
	}
	group.ACLs = []string{acl.UUID}
	db.Put(acl)
	db.Put(group)
	script := printed(t, show.NBCtl, s, db)
	file := content(t, s, served(t, s, db))
	for ovn, schema := range testkit.NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, schema)
			testkit.Tool(t, "ovn-nbctl")
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
			cmd.Stdin = strings.NewReader(script)
			cmd.Env = append(os.Environ(), "OVN_NB_DB="+remote)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("running the script: %v\n%s\n%s", err, out, script)
			}
			if made := content(t, s, remote); made != file {
				t.Errorf("the script made\n%s\nthe file has\n%s", made, file)
			}
		})
	}
}

// Every row has its own UUID in the file, so that a master that starts with it has nothing to do.
func TestFileKeepsUUIDs(t *testing.T) {
	s, db := sample(t)
	remote := served(t, s, db)
	n := 0
	for _, table := range s.Tables() {
		got := strings.Fields(nbctl(t, remote, "--bare", "--columns=_uuid", "list", table))
		var want []string
		for _, m := range db.Rows(table) {
			want = append(want, s.Ref(m).UUID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: UUIDs %v, want %v", table, got, want)
		}
		n += len(got)
	}
	if n != 73 {
		t.Errorf("%d rows, want 73", n)
	}
}

func TestEmptyDatabase(t *testing.T) {
	s := nb.NewSchema()
	db := nb.NewDatabase(s)
	if got := nbctl(t, served(t, s, db), "show"); got != "" || printed(t, show.Text, s, db) != "" {
		t.Errorf("an empty database shows %q and %q", got, printed(t, show.Text, s, db))
	}
}
