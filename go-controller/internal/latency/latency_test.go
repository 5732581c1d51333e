package latency_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/latency"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// ovn is a database whose followers take a while.
type ovn struct {
	takes  map[ovsdb.Follower]time.Duration // since the number was raised
	broken error
	raised time.Time
}

func (o *ovn) RaiseSequence(context.Context) (ovsdb.Sequence, error) {
	o.raised = time.Now()
	return ovsdb.Sequence{Number: 1}, o.broken
}

func (o *ovn) Followed(ctx context.Context, _ ovsdb.Sequence, by ovsdb.Follower, within time.Duration) error {
	left := o.takes[by] - time.Since(o.raised)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(left, within)):
	}
	if left > within {
		return ovsdb.ErrBehind
	}
	return nil
}

// sums is the seconds that were measured in all, by part of OVN.
func sums(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "northbound_ovn_latency_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleSum()
		}
	}
	return out
}

// What OVN takes is measured at each interval; what it does not do in a minute is counted as late, and logged once.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, out := prometheus.NewRegistry(), &bytes.Buffer{}
		m := metrics.NewMaster(registry)
		var database latency.Database
		p := latency.Probe{Every: 10 * time.Second, Database: func() latency.Database { return database }, Metrics: m,
			Log: slog.New(slog.NewTextHandler(out, nil))}
		check := func(lasts time.Duration, results map[string]float64) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			p.Run(ctx)
			for _, result := range []string{"followed", "northd_late", "controllers_late", "failed"} {
				if got := testutil.ToFloat64(m.OVNProbes.WithLabelValues(result)); got != results[result] {
					t.Errorf("%g probes %s, want %g", got, result, results[result])
				}
			}
		}
		check(15*time.Second, nil) // there is no database yet

		database = &ovn{takes: map[ovsdb.Follower]time.Duration{ovsdb.Northd: time.Second,
			ovsdb.Controllers: 3 * time.Second}}
		check(25*time.Second, map[string]float64{"followed": 2})
		if got, want := sums(t, registry), map[string]float64{"northd": 2, "controllers": 6}; !maps.Equal(got, want) {
			t.Errorf("latencies %v in all, want %v", got, want)
		}

		database = &ovn{takes: map[ovsdb.Follower]time.Duration{ovsdb.Controllers: time.Hour}}
		check(135*time.Second, map[string]float64{"followed": 2, "controllers_late": 2})
		database = &ovn{takes: map[ovsdb.Follower]time.Duration{ovsdb.Northd: time.Hour}}
		check(75*time.Second, map[string]float64{"followed": 2, "controllers_late": 2, "northd_late": 1})
		database = &ovn{broken: errors.New("no answer")}
		check(25*time.Second, map[string]float64{"followed": 2, "controllers_late": 2, "northd_late": 1, "failed": 2})
		database = &ovn{}
		check(15*time.Second, map[string]float64{"followed": 3, "controllers_late": 2, "northd_late": 1, "failed": 2})
		if lines := strings.Count(out.String(), "\n"); lines != 4 {
			t.Errorf("%d lines of log, want 4:\n%s", lines, out)
		}
	})
}
