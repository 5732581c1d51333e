package reflector

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// A program is behind until it has heard of each kind, while a list or a watch fails, and when nothing was heard of a
// kind for longer than any watch lasts.
func TestContacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Contacts
		says := func(want string) {
			t.Helper()
			if err := c.Behind(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("behind: %v, want %q", err, want)
			}
		}
		row := func(kind cluster.Kind) kinds.Kind {
			k, ok := kinds.Find(kinds.All(), kind)
			if !ok {
				t.Fatalf("there is no row of %s", kind)
			}
			return k
		}
		says("")
		c.Expect(row(cluster.KindNode))
		says("nothing was heard of nodes yet")
		nodes, pods := c.Of(row(cluster.KindNode)), c.Of(row(cluster.KindPod))
		nodes(nil)
		says("nothing was heard of pods yet")
		pods(nil)
		says("")
		pods(errors.New("connection refused"))
		says("the watch of pods fails: connection refused")
		pods(nil)
		says("")
		time.Sleep(silence)
		says("")
		pods(nil)
		time.Sleep(time.Second)
		says("nothing was heard of nodes for 11m1s")
	})
}
