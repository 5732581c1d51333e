package local

import (
	"maps"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// goneFor is how long a pod that is gone is remembered: longer than anybody waits for a pod.
const goneFor = 5 * time.Minute

// gone remembers the last pod that went, by name. A runtime may still ask for a pod that was deleted by force. It would
// wait in vain for a pod that this node's watch has already seen come and go.
type gone struct {
	mu   *sync.Mutex
	last map[cluster.Name]gonePod
}

type gonePod struct {
	uid string
	at  time.Time
}

func newGone() gone { return gone{&sync.Mutex{}, map[cluster.Name]gonePod{}} }

// uid is that of the last pod of a name that went, "" for none.
func (g gone) uid(n cluster.Name) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last[n].uid
}

func (g gone) note(n cluster.Name, uid string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(g.last, func(_ cluster.Name, p gonePod) bool { return now.Sub(p.at) > goneFor })
	g.last[n] = gonePod{uid, now}
}
