package agent

import (
	"context"
	"sync"
	"time"
)

// askTimeout bounds asking the Southbound database.
const askTimeout = 5 * time.Second

// diagnosis is what somebody, such as the Southbound database of the management
// port, was last found to say. Asking takes as long as the network takes, so that passes
// don't wait for it: each failing pass has it asked again, and takes the last
// answer.
type diagnosis struct {
	mu     sync.Mutex
	asking bool
	answer string
}

// last is the last answer; another is asked for with ask unless one is under
// way. changed is called when the answer has become another.
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
