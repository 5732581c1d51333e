package write

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// However long the API server was away, an object waits for seconds only; what is refused waits longer and longer.
func TestRetries(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		err  error
		last time.Duration
	}{
		"no connection": {errors.New("connection refused"), lastAway},
		"not ready":     {apierrors.NewServiceUnavailable("etcd"), lastAway},
		"overloaded":    {apierrors.NewTooManyRequests("later", 1), lastAway},
		"timeout":       {apierrors.NewServerTimeout(pods, "patch", 1), lastAway},
		"no identity":   {apierrors.NewUnauthorized("booting"), lastAway},
		"a webhook": {apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", pods, "p",
			"failed calling webhook", 0, false), lastRefused},
		"forbidden": {apierrors.NewForbidden(pods, "p", errors.New("no")), lastRefused},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := &retries{failed: map[subject]failures{}}, subjectNamed("p")
			if pause, attempt := r.pause(s, c.err); pause < firstRetry || pause > 2*firstRetry || attempt != 1 {
				t.Errorf("the first failure: pause %s, attempt %d", pause, attempt)
			}
			for range 1000 {
				r.pause(s, c.err)
			}
			if pause, _ := r.pause(s, c.err); pause < c.last || pause > c.last*3/2 {
				t.Errorf("after many failures: pause %s, want %s and up to half more", pause, c.last)
			}
			r.forget(s)
			if pause, attempt := r.pause(s, c.err); pause > 2*firstRetry || attempt != 1 {
				t.Errorf("after a success: pause %s, attempt %d", pause, attempt)
			}
		})
	}
}

func subjectNamed(name string) subject {
	return subject{Ref: cluster.Ref{Name: cluster.Name{Name: name}}}
}

// An outage does not count against an object that is refused afterwards, and many failing objects share the attempts.
func TestRetriesOfMany(t *testing.T) {
	r, s := &retries{failed: map[subject]failures{}}, subjectNamed("p")
	for range 100 {
		r.pause(s, errors.New("connection refused"))
	}
	if pause, _ := r.pause(s, apierrors.NewForbidden(corev1.Resource("pods"), "p", nil)); pause > 2*firstRetry {
		t.Errorf("the first refusal after an outage: pause %s", pause)
	}
	for i := range 5000 {
		r.failed[subjectNamed(string(rune(i)))] = failures{away: 1}
	}
	if pause, _ := r.pause(s, errors.New("connection refused")); pause < 10*time.Second {
		t.Errorf("one of 5000 that fail: pause %s, want at least 10 s: 500 attempts a second", pause)
	}
}
