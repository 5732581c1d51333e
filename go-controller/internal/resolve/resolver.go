package resolve

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Known is what is known of a name.
type Known struct {
	Addrs   []netip.Addr // sorted
	Trouble string       // why addresses may be missing or old; "" for none
	Pending bool         // neither an answer nor enough failures have come yet
}

// equal is true when k says the same.
func (k Known) equal(o Known) bool {
	return k.Trouble == o.Trouble && k.Pending == o.Pending && slices.Equal(k.Addrs, o.Addrs)
}

// How fast questions are asked, and how many at once. The names that are due first come first, so that a name whose
// records live for no time delays no other one by more than its own questions.
const (
	between   = 20 * time.Millisecond
	mostAsked = 16
)

// Options is how a Resolver works.
type Options struct {
	Client   Client
	Families []names.Family // to ask for
	Grace    time.Duration  // for how long an address is kept that is gone from the answers
	Metrics  *metrics.Master
	Log      *slog.Logger
}

// Resolver follows the addresses of names.
type Resolver struct {
	Options
	ask    func(ctx context.Context, name string, is4 bool) (answer, error)
	signal chan struct{}
	wake   chan struct{}

	mu        sync.Mutex
	names     map[string][]*question
	altered   map[string]bool // names of which Take may have something to say
	published map[string]Known
}

// New is a Resolver that follows no name yet.
func New(o Options) *Resolver {
	return &Resolver{Options: o, ask: o.Client.ask, signal: make(chan struct{}, 1),
		wake: make(chan struct{}, 1), names: map[string][]*question{}, altered: map[string]bool{},
		published: map[string]Known{}}
}

// Signal delivers a value when Take has something. Values merge.
func (r *Resolver) Signal() <-chan struct{} { return r.signal }

// Follow says which names to ask for.
func (r *Resolver) Follow(wanted []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := make(map[string]bool, len(wanted))
	for _, n := range wanted {
		if is[n] = true; r.names[n] != nil {
			continue
		}
		for _, f := range r.Families {
			r.names[n] = append(r.names[n], newQuestion(n, f == names.IPv4, r.Grace, time.Now()))
		}
		r.alter(n)
	}
	for n := range r.names {
		if !is[n] {
			delete(r.names, n)
			r.alter(n)
		}
	}
	r.measure()
	notify(r.wake)
}

// alter notes that something else may be known of a name.
func (r *Resolver) alter(name string) {
	r.altered[name] = true
	notify(r.signal)
}

// Presume takes addresses as known that an earlier Resolver found for names that are followed.
func (r *Resolver) Presume(known map[string][]netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, addrs := range known {
		for _, q := range r.names[name] {
			q.presume(addrs, time.Now())
		}
		r.alter(name)
	}
}

// Take returns the names of which something else is known than at the last call. Those that are no longer followed are
// in gone.
func (r *Resolver) Take() (changed map[string]Known, gone []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = map[string]Known{}
	for name := range r.altered {
		was, there := r.published[name]
		now := known(r.names[name])
		switch {
		case r.names[name] != nil && !was.equal(now):
			changed[name], r.published[name] = now, now
		case r.names[name] == nil && there:
			delete(r.published, name)
			gone = append(gone, name)
		}
	}
	clear(r.altered)
	return changed, gone
}

// known is what the questions about one name have led to.
func known(questions []*question) Known {
	var out Known
	none, asked := "", 0
	for _, q := range questions {
		out.Pending = out.Pending || !q.answered && q.failures < tellAfter
		out.Addrs = slices.AppendSeq(out.Addrs, maps.Keys(q.addrs))
		if out.Trouble == "" {
			out.Trouble = q.trouble()
		}
		if q.answered {
			none, asked = q.none, asked+1
		}
	}
	slices.SortFunc(out.Addrs, netip.Addr.Compare)
	if out.Trouble == "" && len(out.Addrs) == 0 && asked == len(questions) {
		out.Trouble = none
	}
	return out
}

// result is how a question ended.
type result struct {
	question *question
	answer   answer
	err      error
}

// Run asks until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	results := make(chan result, mostAsked)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return
		case res := <-results:
			asked--
			if ctx.Err() == nil {
				r.finish(res)
			}
			continue // the timer goes on: questions keep their distance
		case <-r.wake:
		case <-timer.C:
		}
		q, wait := r.next(asked < mostAsked)
		timer.Reset(wait)
		if q == nil {
			continue
		}
		asked++
		running.Go(func() {
			a, err := r.ask(ctx, q.name, q.is4)
			results <- result{q, a, err} // there is room for all
		})
	}
}

// idle is how long to wait at most while nothing is asked: a change of the names ends the wait.
const idle = time.Hour

// next is the question that is due first, and how long to wait before the one after it.
func (r *Resolver) next(room bool) (*question, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *question
	longest := idle
	for _, questions := range r.names {
		for _, q := range questions {
			if q.asking { // it is due again then at the earliest
				longest = minTTL
			}
			if !q.asking && (first == nil || q.due.Before(first.due)) {
				first = q
			}
		}
	}
	switch {
	case first == nil:
		return nil, longest
	case first.due.After(time.Now()):
		return nil, min(max(time.Until(first.due), between), longest)
	case !room:
		return nil, between
	}
	first.asking = true
	return first, between
}

// finish takes the result of a question.
func (r *Resolver) finish(res result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := res.question
	failed := q.failures
	q.asking = false
	switch {
	case res.err != nil:
		q.fail(res.err.Error(), time.Now())
		r.Metrics.DomainQueries.WithLabelValues("failed").Inc()
		if q.failures == tellAfter {
			r.Log.Warn("a name of a policy is not resolved", "name", q.name, "ipv4", q.is4, "error", res.err)
		}
	default:
		q.learn(res.answer, time.Now())
		outcome := "answered"
		if len(res.answer.addrs) == 0 {
			outcome = "none"
		}
		r.Metrics.DomainQueries.WithLabelValues(outcome).Inc()
		if failed >= tellAfter {
			r.Log.Info("a name of a policy is resolved again", "name", q.name, "ipv4", q.is4)
		}
	}
	r.measure()
	if was, there := r.published[q.name]; !there || !was.equal(known(r.names[q.name])) {
		r.alter(q.name)
	}
}

// measure publishes how many names are followed, and the time of the oldest answer.
func (r *Resolver) measure() {
	var oldest time.Time
	for _, questions := range r.names {
		for _, q := range questions {
			if oldest.IsZero() || q.since.Before(oldest) {
				oldest = q.since
			}
		}
	}
	r.Metrics.DomainNames.Set(float64(len(r.names)))
	if oldest.IsZero() {
		r.Metrics.DomainAnswer.Set(0)
		return
	}
	r.Metrics.DomainAnswer.Set(float64(oldest.Unix()))
}

// notify makes a channel deliver a value unless it has one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
