package testkit

import (
	"strings"
	"testing"
)

func TestStartOVSDB(t *testing.T) {
	want := map[string]string{"23.03": "7.0.0", "25.03": "7.11.0", "26.03": "7.18.0", "26.09": "7.19.0"}
	for ovn, schema := range NBSchemas() {
		t.Run(ovn, func(t *testing.T) {
			remote := StartOVSDB(t, schema)
			got := strings.TrimSpace(Run(t, "ovsdb-client", "get-schema-version", remote, "OVN_Northbound"))
			if got != want[ovn] {
				t.Errorf("schema version %q, want %q", got, want[ovn])
			}
			Run(t, "ovn-nbctl", "--no-leader-only", "--db="+remote, "ls-add", "a")
			got = Run(t, "ovn-nbctl", "--db="+remote, "--bare", "--columns=name", "list", "Logical_Switch")
			if strings.TrimSpace(got) != "a" {
				t.Errorf("switches %q, want a", got)
			}
		})
	}
}

func TestRelay(t *testing.T) {
	r := StartRelay(t, StartOVSDB(t, NBSchemas()["25.03"]))
	Run(t, "ovn-nbctl", "--no-leader-only", "--db="+r.Remote, "ls-add", "a", "--", "lsp-add", "a", "p")
	Run(t, "ovn-nbctl", "--no-leader-only", "--db="+r.Remote, "list", "Logical_Switch")
	w := r.Wire()
	if len(w.Transactions) != 1 {
		t.Fatalf("%d transactions, want one: %+v", len(w.Transactions), w.Transactions)
	}
	tx, bytes, inserts := w.Transactions[0], 0, 0
	for _, op := range tx.Operations {
		bytes += len(op)
		inserts += strings.Count(string(op), `"op":"insert"`)
	}
	// In an empty database ovn-nbctl makes the row of NB_Global too.
	if inserts != 3 || tx.Request <= bytes || tx.Answer == 0 || w.Sent < tx.Request || w.Received < w.Notified+tx.Answer {
		t.Errorf("%d inserts, %d bytes of operations, want 3 and fewer bytes than in the request of %d; "+
			"an answer of %d, %d sent, %d received",
			inserts, bytes, tx.Request, tx.Answer, w.Sent, w.Received)
	}
	if w.Changed != 3 || w.Notified == 0 {
		t.Errorf("%d rows and %d bytes were notified, want 3 rows", w.Changed, w.Notified)
	}
}

func TestStartVSwitch(t *testing.T) {
	remote := StartOVSDB(t, VSwitchSchema())
	if got := strings.TrimSpace(Run(t, "ovsdb-client", "list-dbs", remote)); !strings.Contains(got, "Open_vSwitch") {
		t.Errorf("databases %q, want Open_vSwitch", got)
	}
}
