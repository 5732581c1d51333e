package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// link is an agent's connection to the API server.
type link struct {
	mu      sync.Mutex
	cut     bool
	watches []watch.Interface
}

func newLink(b *bed) *link {
	k := &link{}
	b.client.PrependWatchReactor("*", func(action kubetesting.Action) (bool, watch.Interface, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.cut {
			return true, nil, errors.New("connection refused")
		}
		w, err := b.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		k.watches = append(k.watches, w)
		return true, w, err
	})
	b.client.PrependReactor("list", "*", func(kubetesting.Action) (bool, runtime.Object, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.cut, nil, errors.New("connection refused")
	})
	return k
}

// set cuts the connection, or restores it.
func (k *link) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = cut
	for _, w := range k.watches {
		w.Stop()
	}
	k.watches = nil
}

// A node that is set up stays so while the API server is away. Its agent is not ready meanwhile: it hears of no change.
func TestReadyNeedsAPIServer(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := bareBed(t)
	k := newLink(b)
	b.start(t)
	b.becomeReady(t)
	if b.agent.turned.Load() == nil {
		t.Error("the loop does not say that it turns, so that nobody would notice that it stands still")
	}
	k.set(true)
	b.awaitMissing(t, "fails: connection refused")
	if err := b.agent.gate.Missing(); err != nil {
		t.Errorf("pods: %v, want that their network is as it was", err)
	}
	b.awaitState(t, wantState)
	k.set(false)
	b.awaitReady(t)
}

// An agent whose loop stands still is to be started again; one that has not begun yet is not. /healthz says so.
func TestAlive(t *testing.T) {
	a := &Agent{log: slog.New(slog.DiscardHandler)}
	web, err := a.listen("127.0.0.1:0", prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { web.Run(ctx) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	healthz := func(when string, want int, say string) {
		t.Helper()
		answer, err := http.Get("http://" + web.Addr() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != want || !strings.Contains(string(body), say) {
			t.Errorf("%s: /healthz is %d %q (%v), want %d and %q in it", when, answer.StatusCode, body, err, want, say)
		}
	}
	healthz("before the first pass", http.StatusOK, "ok")
	a.turned.Store(new(time.Now().Add(-stuckAfter / 2)))
	healthz("in a long pass", http.StatusOK, "ok")
	a.turned.Store(new(time.Now().Add(-stuckAfter - time.Minute)))
	healthz("after a pass that never ended", http.StatusServiceUnavailable, "no pass for 3m0s")
}
