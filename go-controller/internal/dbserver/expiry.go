package dbserver

import (
	"context"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// WatchExpiry measures when the certificates of a database's server end, until ctx ends.
func (m Member) WatchExpiry(ctx context.Context, d Database) {
	keys := config.Keys{Cert: m.Layout.key(d), CACert: m.Layout.ca(d)}
	tlsfiles.WatchExpiry(ctx, keys, func(part string, at float64) {
		m.Metrics.Expiry.WithLabelValues(d.Short, part).Set(at)
	})
}
