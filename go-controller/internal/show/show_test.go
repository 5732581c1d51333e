package show_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestParseFormat(t *testing.T) {
	for _, f := range show.Formats() {
		if got, err := show.ParseFormat(string(f)); err != nil || got != f {
			t.Errorf("%s: %v, %v", f, got, err)
		}
	}
	if _, err := show.ParseFormat("yaml"); err == nil ||
		err.Error() != `format "yaml": want one of [show json ovsdb nbctl dot]` {
		t.Errorf("yaml: %v", err)
	}
	if err := show.Write(nil, "yaml", nb.NewSchema(), nb.NewDatabase(nb.NewSchema())); err == nil {
		t.Error("writing an unknown format: no error")
	}
}

// Characters that are special to a shell or to ovn-nbctl arrive unchanged.
func TestScriptQuotes(t *testing.T) {
	s := nb.NewSchema()
	db := nb.NewDatabase(s)
	hostile := map[string]string{"plain": "x", "it's": `a "b" $HOME \ ` + "`id`;", "=": "", "a,b": "{c}", "5": "100",
		"-x": "--"}
	db.Put(&nbdb.LogicalSwitch{UUID: "11111111-1111-5111-8111-111111111111", Name: "sw", OtherConfig: hostile,
		ExternalIDs: map[string]string{"k": "'"}})
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["23.03"])
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Stdin = strings.NewReader(printed(t, show.NBCtl, s, db))
	cmd.Env = append(os.Environ(), "OVN_NB_DB="+remote)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("running the script: %v\n%s", err, out)
	}
	var got struct{ Data [][]any }
	if err := json.Unmarshal([]byte(nbctl(t, remote, "--format=json", "--columns=other_config", "list", "Logical_Switch")),
		&got); err != nil {
		t.Fatal(err)
	}
	pairs := map[string]string{}
	for _, p := range got.Data[0][0].([]any)[1].([]any) {
		pairs[p.([]any)[0].(string)] = p.([]any)[1].(string)
	}
	if fmt.Sprint(pairs) != fmt.Sprint(hostile) {
		t.Errorf("made %q, want %q", pairs, hostile)
	}
}

func TestScriptNeedsNames(t *testing.T) {
	s := nb.NewSchema()
	db := nb.NewDatabase(s)
	db.Put(&nbdb.LogicalSwitch{UUID: "11111111-1111-5111-8111-111111111111", Name: "twice"})
	db.Put(&nbdb.LogicalSwitch{UUID: "22222222-2222-5222-8222-222222222222", Name: "twice"})
	var b strings.Builder
	err := show.Write(&b, show.NBCtl, s, db)
	if want := `printing the database as nbctl: two rows of Logical_Switch are named "twice": a script can't ` +
		`tell them apart`; err == nil || err.Error() != want || b.Len() != 0 {
		t.Errorf("error %v, output %q; want %q", err, b.String(), want)
	}
}

// The graph of a large cluster shows the beginning of each list, and the number of the other entries.
func TestGraphIsCut(t *testing.T) {
	s := nb.NewSchema()
	db := nb.NewDatabase(s)
	ls := &nbdb.LogicalSwitch{UUID: "11111111-1111-5111-8111-111111111111", Name: "big <&>"}
	for i := range 100 {
		u := fmt.Sprintf("33333333-3333-5333-8333-%012d", i)
		db.Put(&nbdb.LogicalSwitchPort{UUID: u, Name: fmt.Sprintf("p%03d", i)})
		ls.Ports = append(ls.Ports, u)
	}
	db.Put(ls)
	got := printed(t, show.Dot, s, db)
	for _, want := range []string{"switch big &lt;&amp;&gt;", "p015", "and 84 more ports"} {
		if !strings.Contains(got, want) {
			t.Errorf("the graph has no %q", want)
		}
	}
	if strings.Contains(got, "p016") {
		t.Error("the graph has more than 16 ports of a switch")
	}
}
