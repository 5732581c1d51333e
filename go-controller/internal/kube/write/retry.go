package write

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// The pause after a failed attempt grows from firstRetry: to lastAway while the API server is away, so that what waits
// is written soon after it is back; to lastRefused when it refuses the patch, such as by a webhook. When many
// objects fail, each waits at least retryEach for each of them: that bounds the attempts in a second.
const (
	firstRetry  = 50 * time.Millisecond
	lastAway    = 2 * time.Second
	lastRefused = 30 * time.Second
	retryEach   = 2 * time.Millisecond
)

// retries decides how long a subject waits after a failed attempt.
type retries struct {
	mu     sync.Mutex
	failed map[subject]failures // since the last success
}

// failures counts the attempts that failed, because the API server was away and because it refused.
type failures struct{ away, refused int }

// pause is how long a subject waits after an attempt that failed with err. Up to half of it is random. attempt is the
// number of that attempt.
func (r *retries) pause(s subject, err error) (pause time.Duration, attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failed[s]
	count, last := &f.refused, lastRefused
	if away(err) {
		count, last = &f.away, lastAway
	}
	pause = min(firstRetry<<min(*count, 16), last)
	*count++
	r.failed[s] = f
	many := min(retryEach*time.Duration(len(r.failed)), lastRefused)
	return wait.Jitter(max(pause, many), 0.5), f.away + f.refused
}

func (r *retries) forget(s subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, s)
}

// away tells whether an attempt failed because the API server, or what it stands on, does not serve at the moment.
func away(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)
}
