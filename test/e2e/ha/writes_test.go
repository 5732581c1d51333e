package ha

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

// writes records when the rows of a table changed.
type writes struct {
	what string
	mu   sync.Mutex
	at   []time.Time
}

// watch follows a table on another machine than the one that is to suffer.
func (b *bed) watch(t *testing.T, victim *control.Control, socket, database, table, column string) *writes {
	t.Helper()
	all := b.Controls()
	from := all[slices.IndexFunc(all, func(c *control.Control) bool { return c != victim })]
	client, err := ovsdbwire.Dial(from.Host(socket))
	must(t, err)
	t.Cleanup(func() { _ = client.Close() }) // nothing is written through it
	w := &writes{what: table + " on " + from.Spec.Name}
	must(t, client.Monitor(database, table, []string{column}, func(string, map[string]ovsdbwire.RowUpdate) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at = append(w.at, time.Now())
	}))
	return w
}

func (w *writes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.at)
}

// more waits for n more changes.
func (w *writes) more(t *testing.T, n int) {
	t.Helper()
	want := w.count() + n
	machines.Within(t, limit, "changes of "+w.what, func(context.Context) string {
		if have := w.count(); have < want {
			return fmt.Sprintf("%d, want %d", have, want)
		}
		return ""
	})
}

// pause is the longest time between two changes. The first call is the existing rows'.
func (w *writes) pause() (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.at); i++ {
		longest = max(longest, w.at[i].Sub(w.at[i-1]))
	}
	return longest
}
