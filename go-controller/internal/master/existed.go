package master

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// connected is how often hasOwners looks whether there is a session.
const connected = 50 * time.Millisecond

// hasOwners waits for a session with the Northbound database, and tells whether objects of a kind have rows there. Then
// the kind was served when a master last looked. It is false when ctx ends.
func hasOwners(ctx context.Context, session func() *ovsdb.Session, k cluster.Kind) bool {
	owns, tick := k.Owns(), time.NewTicker(connected)
	defer tick.Stop()
	for {
		if s := session(); s != nil {
			return s.HasOwner(func(o nb.Owner) bool { return owns(o.Kind, o.Name) })
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
