package ovsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// ErrNotConnected says that the Northbound database could not be reached in time.
var ErrNotConnected = errors.New("the Northbound database can't be reached")

// notConnected is ErrNotConnected that reads as its reason alone.
type notConnected struct{ reason error }

func (e notConnected) Error() string        { return e.reason.Error() }
func (e notConnected) Unwrap() error        { return e.reason }
func (e notConnected) Is(target error) bool { return target == ErrNotConnected }

// With is for programs that look once. It waits for a session as long as ctx allows, calls do with it, and then closes
// the connection.
func With(ctx context.Context, c config.OVSDB, schema *nb.Schema, log *slog.Logger, do func(*Session) error) error {
	if err := Check(c); err != nil {
		return err
	}
	db := New(c, schema, log)
	var wg sync.WaitGroup
	defer wg.Wait()
	dbCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { db.Run(dbCtx) })
	var session *Session
	for session = db.Session(); session == nil; session = db.Session() {
		select {
		case <-db.Signal():
		case <-ctx.Done():
			late := fmt.Errorf("connecting to the Northbound database %v: %w", c.Addresses, ctx.Err())
			return notConnected{cmp.Or(db.Failure(), late)}
		}
	}
	return do(session)
}
