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

func TestStartVSwitch(t *testing.T) {
	remote := StartOVSDB(t, VSwitchSchema())
	if got := strings.TrimSpace(Run(t, "ovsdb-client", "list-dbs", remote)); !strings.Contains(got, "Open_vSwitch") {
		t.Errorf("databases %q, want Open_vSwitch", got)
	}
}
