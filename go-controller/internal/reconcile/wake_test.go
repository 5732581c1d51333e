package reconcile

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// loopWithout is a loop in the middle of its work, without a server.
func loopWithout(t *testing.T, f *feed, r Recorder) *Loop {
	schema, m := nb.NewSchema(), metrics.NewMaster(prometheus.NewRegistry())
	l := New(Config{Core: core.New(bedConfig(), schema, translate.NewSet()), Writer: f, Recorder: r, Metrics: m,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
	l.session, l.synced = &ovsdb.Session{}, true
	return l
}

// The loop does not sleep when the pause ends between the look at it and the setting of the timer.
func TestWakesAfterThePause(t *testing.T) {
	l := loopWithout(t, newFeed(), nil)
	l.fullPassBegun = true
	l.dirty.add(owner(names.KindPod, "d/p"), clusterChange)
	l.sentAt = time.Now()
	l.step(t.Context())
	if l.inFlight || l.dirty.size != 1 {
		t.Fatal("the transaction was sent within the pause")
	}
	if next := l.untilNext(); next > pace {
		t.Errorf("within the pause the loop sleeps for %s, want at most %s", next, pace)
	}
	l.sentAt = l.sentAt.Add(-pace)
	if next := l.untilNext(); next > 0 {
		t.Errorf("after the pause the loop sleeps for %s, want not at all", next)
	}
}

// ambiguous is a Recorder for a database with a damaged record and two cluster routers.
type ambiguous struct{ Recorder }

func (ambiguous) Begin(*cluster.State, *ovsdb.Session) ([]cluster.Event, []cluster.Problem, error) {
	return nil, []cluster.Problem{{Reason: cluster.ReasonByHandRefused}}, errors.New("two routers")
}

// While the database is ambiguous, every wake reads it again. A damaged record is reported once.
func TestReportsOnceWhileAmbiguous(t *testing.T) {
	f := newFeed()
	l := loopWithout(t, f, ambiguous{})
	for range 3 {
		l.takeDirty()
	}
	if l.fullPassBegun || len(f.problems) != 1 {
		t.Errorf("full pass begun: %v, problems %v; want none begun and one problem", l.fullPassBegun, f.problems)
	}
}
