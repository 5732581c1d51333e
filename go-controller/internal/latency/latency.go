package latency

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

// patience is how long OVN has to follow a change. What takes longer is counted as late, and not measured.
const patience = time.Minute

// Database is what a Probe needs of the Northbound database. *ovsdb.Session is one.
type Database interface {
	RaiseSequence(ctx context.Context) (ovsdb.Sequence, error)
	Followed(ctx context.Context, q ovsdb.Sequence, by ovsdb.Follower, within time.Duration) error
}

// Probe measures again and again.
type Probe struct {
	Every    time.Duration   // from the beginning of a measurement to that of the next; longer where one takes longer
	Database func() Database // nil while there is none that has all rows that the master wants
	Metrics  *metrics.Master
	Log      *slog.Logger

	last string // the last result, if it was not the usual one
}

// Run measures until ctx ends.
func (p *Probe) Run(ctx context.Context) {
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if d := p.Database(); d != nil {
			result, err := p.measure(ctx, d)
			if ctx.Err() != nil {
				return
			}
			p.count(result, err)
		}
	}
}

// Results of a measurement.
const (
	followed        = "followed"
	northdLate      = "northd_late"
	controllersLate = "controllers_late"
	failed          = "failed" // the database did not answer, or refused
)

// measure makes a change, and measures how long each part of OVN takes to follow it.
func (p *Probe) measure(ctx context.Context, d Database) (result string, err error) {
	begin := time.Now()
	q, err := d.RaiseSequence(ctx)
	if err != nil {
		return failed, err
	}
	for _, part := range []struct {
		by         ovsdb.Follower
		name, late string
	}{{ovsdb.Northd, "northd", northdLate}, {ovsdb.Controllers, "controllers", controllersLate}} {
		if err := d.Followed(ctx, q, part.by, max(patience-time.Since(begin), time.Millisecond)); err != nil {
			if errors.Is(err, ovsdb.ErrBehind) {
				return part.late, err
			}
			return failed, err
		}
		p.Metrics.OVNLatency.WithLabelValues(part.name).Observe(time.Since(begin).Seconds())
	}
	return followed, nil
}

// count counts a result. It logs one that is not the usual one when it is new.
func (p *Probe) count(result string, err error) {
	p.Metrics.OVNProbes.WithLabelValues(result).Inc()
	switch {
	case result == followed && p.last != "":
		p.Log.Info("OVN's latency is measured again")
		p.last = ""
	case result != followed && p.last != result:
		p.Log.Warn("OVN's latency is not known", "result", result, "error", err)
		p.last = result
	}
}
