package agent

import (
	"context"
	"sync"
	"time"
)

// askTimeout bounds asking the Southbound database.
const askTimeout = 5 * time.Second

// diagnosis is the last answer to a question, such as how far the Southbound database
// has bound the management port. An answer takes as long as the network takes, so
// passes do not wait for it: each failing pass asks again and uses the last answer.
type diagnosis struct {
	mu     sync.Mutex
	asking bool
	answer string
}

// last is the last answer. It asks again with ask, unless a question is under way, and
// calls changed when the answer is another one.
func (d *diagnosis) last(
	ctx context.Context, work *sync.WaitGroup, ask func(context.Context) string, changed func(),
) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking {
		return d.answer
	}
	d.asking = true
	work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		answer := ask(ctx)
		d.mu.Lock()
		news := answer != d.answer
		d.answer, d.asking = answer, false
		d.mu.Unlock()
		if news {
			changed()
		}
	})
	return d.answer
}
