package ovs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The SSL row is made, changed when it differs, and left alone when it does not or when no keys are wanted.
func TestKeys(t *testing.T) {
	db, vsctl := open(t)
	vsctl("init")
	ours := config.Keys{PrivKey: "/k", Cert: "/c", CACert: "/ca"}
	row := func() string {
		return vsctl("--columns=_uuid,private_key,certificate,ca_cert,external_ids", "list", "SSL")
	}
	see := func(want config.Keys) {
		t.Helper()
		testkit.Eventually(t, "the SSL row is seen", func() string {
			if have, err := db.Keys(); have != want {
				return fmt.Sprint(have, err)
			}
			return ""
		})
	}
	change := func(want config.Keys, lines ...string) {
		t.Helper()
		changes, err := db.Converge(t.Context(), hostplan.OVS{Keys: want})
		if err != nil || fmt.Sprint(changes) != fmt.Sprint(lines) {
			t.Errorf("changes %v, %v; want %v", changes, err, lines)
		}
	}
	change(config.Keys{})
	change(ours, "+ ssl private_key=/k certificate=/c ca_cert=/ca")
	see(ours)
	if got := strings.Fields(vsctl("get-ssl")); !strings.Contains(strings.Join(got, " "), "Private key: /k") {
		t.Errorf("ovs-vsctl shows %q", got)
	}
	before := row()
	change(ours)
	change(config.Keys{})
	if now := row(); now != before {
		t.Errorf("the row is\n%s\nit was\n%s", now, before)
	}
	uuid := vsctl("get", "Open_vSwitch", ".", "ssl")
	vsctl("set", "SSL", uuid, "certificate=/operators", "external_ids:operator=yes")
	see(config.Keys{PrivKey: "/k", Cert: "/operators", CACert: "/ca"})
	change(ours, "~ ssl private_key=/k certificate=/c ca_cert=/ca "+
		"(was: ssl private_key=/k certificate=/operators ca_cert=/ca)")
	if now := row(); now != strings.Replace(before, `"true"}`, `"true", operator=yes}`, 1) {
		t.Errorf("the row is\n%s\nwant its own columns kept as in\n%s", now, before)
	}
	if !db.OwnKeys() {
		t.Errorf("the row that the agent has made is not known as its own:\n%s", row())
	}
	vsctl("del-ssl")
	see(config.Keys{})
	vsctl("set-ssl", "/k", "/c", "/ca")
	see(ours)
	if db.OwnKeys() {
		t.Error("the operator's row is taken for the agent's")
	}
}
