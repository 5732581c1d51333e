package reconcile

import (
	"log/slog"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Options of NB_Global are set beside those of others.
func TestGlobalOptions(t *testing.T) {
	for before, want := range map[string]string{
		"options:other=1":              `{acl_ct_translation="true", other="1"}`,
		"options:acl_ct_translation=x": `{acl_ct_translation="true"}`,
	} {
		remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
		testkit.Run(t, "ovn-nbctl", "--db="+remote, "init", "--", "set", "NB_Global", ".", before)
		b := newBedWith(t, remote, newFeed(someCluster()...), Config{Verify: true, Log: slog.New(slog.DiscardHandler),
			Options: map[string]string{names.ACLConntrackOption: "true"}})
		b.inSync()
		if have := b.nbctl("get", "NB_Global", ".", "options"); have != want {
			t.Errorf("%s: options are %s when the loop is in sync, want %s", before, have, want)
		}
	}
}

// A database that was empty is marked once it has everything. A number that is there already stays.
func TestMarkFilled(t *testing.T) {
	for before, want := range map[string]string{"0": "1", "7": "7"} {
		t.Run(before, func(t *testing.T) {
			remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
			testkit.Run(t, "ovn-nbctl", "--db="+remote, "init", "--", "set", "NB_Global", ".", "nb_cfg="+before)
			b := startBed(t, remote, newFeed(someCluster()...))
			if have := b.nbctl("get", "NB_Global", ".", "nb_cfg"); have != want {
				t.Errorf("nb_cfg is %s when the loop is in sync, want %s", have, want)
			}
		})
	}
}
