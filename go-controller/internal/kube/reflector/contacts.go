package reflector

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Contacts records when the API server last said something of the kinds that a program watches.
type Contacts struct {
	mu    sync.Mutex
	kinds []kinds.Kind
	last  map[cluster.Kind]contact
}

// contact is when the API server last said something of a kind, and why a list or a watch of it has failed since.
type contact struct {
	at  time.Time
	err error
}

// silence is how long nothing may be heard of a kind. client-go ends a watch after at most 10 minutes and begins
// another. An API server also sends a bookmark about every minute.
const silence = 11 * time.Minute

// Expect has Behind count kinds from now on.
func (c *Contacts) Expect(expected ...kinds.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range expected {
		if !slices.ContainsFunc(c.kinds, func(known kinds.Kind) bool { return known.Kind == k.Kind }) {
			c.kinds = append(c.kinds, k)
		}
	}
}

// Of is the Heard of a kind's Watch. The kind is expected from now on.
func (c *Contacts) Of(k kinds.Kind) func(error) {
	c.Expect(k)
	return func(err error) { c.hear(k.Kind, err) }
}

func (c *Contacts) hear(k cluster.Kind, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[cluster.Kind]contact{}
	}
	now := contact{at: time.Now()}
	if err != nil {
		now = contact{c.last[k].at, err}
	}
	c.last[k] = now
}

// Behind is why changes in the cluster may not be known: a list or a watch fails, or nothing was heard of a kind. It is
// nil when all is well.
func (c *Contacts) Behind() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		switch last := c.last[k.Kind]; {
		case last.err != nil:
			return fmt.Errorf("the watch of %s fails: %w", k.Plural(), last.err)
		case last.at.IsZero():
			return fmt.Errorf("nothing was heard of %s yet", k.Plural())
		case time.Since(last.at) > silence:
			return fmt.Errorf("nothing was heard of %s for %s", k.Plural(), time.Since(last.at).Round(time.Second))
		}
	}
	return nil
}
