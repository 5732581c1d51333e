package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// With calls do with a session that is in sync, waiting for one as long as ctx
// allows, and then closes the connection. It is for programs that look once.
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
			return fmt.Errorf("connecting to the Northbound database %v: %w", c.Addresses, errors.Join(db.Failure(), ctx.Err()))
		}
	}
	return do(session)
}
