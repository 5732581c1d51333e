package database

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// lookAgain is how often Follow looks.
const lookAgain = 2 * time.Second

// Follower knows the present addresses of the databases' nodes.
type Follower struct {
	Cluster Cluster
	Log     *slog.Logger

	mutex sync.Mutex
	known map[string][]netip.Addr
}

// Addresses are those of each node, as they were found last.
func (f *Follower) Addresses() map[string][]netip.Addr {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.known
}

// Follow looks for the addresses until ctx ends. A failure leaves them as they were.
func (f *Follower) Follow(ctx context.Context) {
	for logged := ""; ctx.Err() == nil; {
		now, err := f.Cluster.Addresses(ctx)
		if err == nil {
			f.mutex.Lock()
			f.known = now
			f.mutex.Unlock()
			logged = ""
		} else if err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			f.Log.Warn("the addresses of other nodes cannot be looked up", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}
