package reconcile

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

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
