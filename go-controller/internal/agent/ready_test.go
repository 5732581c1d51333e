package agent

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

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

// An agent whose loop stands still is to be started again; one that has not begun yet is not.
func TestAlive(t *testing.T) {
	a := &Agent{}
	if err := a.Alive(); err != nil {
		t.Errorf("before the first pass: %v", err)
	}
	a.turned.Store(new(time.Now().Add(-stuckAfter / 2)))
	if err := a.Alive(); err != nil {
		t.Errorf("in a long pass: %v", err)
	}
	a.turned.Store(new(time.Now().Add(-stuckAfter - time.Minute)))
	if err := a.Alive(); err == nil || !strings.Contains(err.Error(), "no pass for 3m0s") {
		t.Errorf("after a pass that never ended: %v", err)
	}
}
