package cni_test

import (
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// ADD does not wait for a pod that was force-deleted before, even if there is a new pod of the same name.
func TestPodGoneBeforeAdd(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, time.Hour)
	older, newer := web(), web()
	newer.uid = "another"
	a := add(older, idA, netns(t, "web"))
	b.create(t, older, true)
	b.awaitSeen(t, older.name)
	b.delete(t, older.name)
	for _, again := range []bool{false, true} {
		if again {
			b.create(t, newer, true)
			b.awaitSeen(t, newer.name)
		}
		out, err := a.cmd(t.Context(), t).Output()
		if err == nil || !strings.Contains(string(out), "the pod was deleted meanwhile") {
			t.Errorf("there is a new pod: %v: %v %s, want that the pod was deleted", again, err, out)
		}
	}
	if got := left(t); got != "" {
		t.Errorf("left on the node:\n%s", got)
	}
}
