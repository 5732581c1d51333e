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

// ErrNotConnected says that no session came about in time.
var ErrNotConnected = errors.New("the Northbound database can't be reached")

// notConnected is ErrNotConnected with its reason, which says it all.
type notConnected struct{ reason error }

func (e notConnected) Error() string        { return e.reason.Error() }
func (e notConnected) Unwrap() error        { return e.reason }
func (e notConnected) Is(target error) bool { return target == ErrNotConnected }

// With calls do with a session that is in sync, waiting for one as long as ctx allows, and then closes the connection.
// It is for programs that look once.
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
			return notConnected{cmp.Or(db.Failure(), fmt.Errorf("connecting to the Northbound database %v: %w", c.Addresses, ctx.Err()))}
		}
	}
	return do(session)
}
