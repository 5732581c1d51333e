package reflector

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// ErrRefused tells that the API server refuses to list or watch a kind, so that not all of it is known.
var ErrRefused = errors.New("the API server refuses")

// Refusals records which kinds the API server refuses to list or watch at the moment.
type Refusals struct {
	Count interface{ Set(float64) } // a metric; nil for none
	// Log gets a line when a refusal begins or ends; nil for nobody.
	Log *slog.Logger

	mu     sync.Mutex
	byKind map[string]error
}

// Of is the Refused of a kind's Watch. changed is called when a refusal begins or ends.
func (r *Refusals) Of(k kinds.Kind, changed func()) func(error) {
	return func(err error) {
		r.mu.Lock()
		_, had := r.byKind[k.Plural()]
		delete(r.byKind, k.Plural())
		if err != nil {
			if r.byKind == nil {
				r.byKind = map[string]error{}
			}
			r.byKind[k.Plural()] = err
		}
		if r.Count != nil {
			r.Count.Set(float64(len(r.byKind)))
		}
		r.mu.Unlock()
		if had != (err != nil) {
			r.log(k, err)
			changed()
		}
	}
}

// log says that a refusal began or ended. The error of an API server names the identity, the verb and the kind.
func (r *Refusals) log(k kinds.Kind, err error) {
	switch {
	case r.Log == nil:
	case err != nil:
		r.Log.Error("the API server refuses a kind: its rows stay as they are", "kind", k.Plural(), "error", err,
			"want", "a ClusterRole that lets this identity list and watch the kind")
	default:
		r.Log.Info("the API server refuses a kind no more", "kind", k.Plural())
	}
}

// Err names what the API server refuses, and why; nil for nothing.
func (r *Refusals) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, plural := range slices.Sorted(maps.Keys(r.byKind)) {
		errs = append(errs, fmt.Errorf("%w to list and watch %s: grant this identity that right: %w",
			ErrRefused, plural, r.byKind[plural]))
	}
	return errors.Join(errs...)
}
