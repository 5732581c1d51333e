package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
)

// beOlder has lists be those of a resource version from now on. Watches break, and tell nothing after such a list.
func (f *front) beOlder(version string) error {
	older, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return fmt.Errorf("reading a resource version: %w", err)
	}
	f.mu.Lock()
	f.older = older
	f.mu.Unlock()
	f.fail(stale)
	return nil
}

// tookOlder says that no client has taken a stale list yet.
func (f *front) tookOlder(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.taken {
		return fmt.Sprintf("nobody watches from there on after %d requests", f.asked), nil
	}
	return "", nil
}

// stale is the request for an older list. It answers a watch itself, and returns nil: the versions after the older one
// are too old, the older one itself has no news.
func (f *front) stale(out http.ResponseWriter, r *http.Request, older uint64) *http.Request {
	q := r.URL.Query()
	version, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64) // 0 for none
	switch {
	case q.Get("watch") == "":
		q.Set("resourceVersion", strconv.FormatUint(older, 10))
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		r.URL.RawQuery = q.Encode()
		return r
	case q.Get("sendInitialEvents") != "":
		refuse(out, http.StatusUnprocessableEntity, f.resource)
	case version > older:
		refuse(out, http.StatusGone, f.resource)
	default:
		f.mu.Lock()
		f.taken = true
		f.mu.Unlock()
		_ = http.NewResponseController(out).Flush() // a client that is gone needs no answer
		<-r.Context().Done()
	}
	return nil
}

// seesOlder has the master take a list of Services that lacks a new one, and has one that was deleted since. All others
// keep their rows. When the API server tells of both again, the new one has rows, and the deleted one has none.
func (w *world) seesOlder(ctx context.Context, f *front) error {
	const deleted, added = 4, keptServices // failsMeanwhile deleted those before
	list, err := w.Kube.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	if _, err := load.CreateService(ctx, w.Kube, namespace, firstKept+added); err != nil {
		return err
	}
	if err := w.deleteService(ctx, deleted); err != nil {
		return err
	}
	if err := w.eventually(ctx, "the newest list counts", w.haveNewest(added, deleted)); err != nil {
		return err
	}
	if err := f.beOlder(list.ResourceVersion); err != nil {
		return err
	}
	if err := w.eventually(ctx, "the master has taken an older list", f.tookOlder); err != nil {
		return err
	}
	if err := w.eventually(ctx, "a pod is served though a list is older", w.newPodMeanwhile()); err != nil {
		return err
	}
	if missing, err := w.haveRows(deleted + 1)(ctx); missing != "" || err != nil {
		return errors.Join(err, fmt.Errorf("rows are missing of Services that both lists have: %s", missing))
	}
	if err := w.eventually(ctx, "the older list counts", w.haveNewest(deleted, added)); err != nil {
		return err
	}
	f.fail(whole)
	return w.eventually(ctx, "the newest list counts again", w.haveNewest(added, deleted))
}

// haveNewest tells whether a Service that a list has has no rows, or one that it lacks has some.
func (w *world) haveNewest(added, deleted int) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := w.serviceRows(ctx)
		switch {
		case err != nil:
			return "", err
		case !strings.Contains(out, keptName(added)):
			return keptName(added) + " has no rows", nil
		case strings.Contains(out, keptName(deleted)):
			return keptName(deleted) + " has rows", nil
		}
		return "", nil
	}
}
