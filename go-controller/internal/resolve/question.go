package resolve

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// When a name is asked for again, and for how long its addresses are kept. The servers of a name choose the time to
// live of its records, so it is taken within limits.
const (
	minTTL      = 5 * time.Second
	maxTTL      = 10 * time.Minute
	negativeTTL = 30 * time.Second
	crowdedTTL  = time.Minute // of a name with more addresses than are kept
	maxBackoff  = 5 * time.Minute
	// staleFor is how long addresses are kept while nobody answers. After that somebody else may have them.
	staleFor = 24 * time.Hour
)

// mostAddresses is how many addresses of a family are kept for a name.
const mostAddresses = 128

// tellAfter is after how many failures in a row users hear of them.
const tellAfter = 4

// question is what is known of a name in one family.
type question struct {
	name  string
	is4   bool
	grace time.Duration

	addrs    map[netip.Addr]time.Time // until when each is kept
	due      time.Time                // when to ask next
	asking   bool
	since    time.Time // of the last answer; when it was first to be asked before there was one
	answered bool
	failures int // in a row
	none     string
	failure  string // the last one
}

func newQuestion(name string, is4 bool, grace time.Duration, now time.Time) *question {
	return &question{name: name, is4: is4, grace: grace, addrs: map[netip.Addr]time.Time{}, due: now, since: now}
}

// presume takes addresses as those of an earlier answer.
func (q *question) presume(addrs []netip.Addr, now time.Time) {
	for _, a := range addrs {
		if _, known := q.addrs[a]; !known && a.Is4() == q.is4 {
			q.addrs[a] = now.Add(q.grace)
		}
	}
	q.limit()
}

// learn takes an answer. Addresses that it does not have any more are kept for a while: clients remember them, and
// connections go on.
func (q *question) learn(a answer, now time.Time) {
	q.answered, q.since, q.failures, q.failure, q.none = true, now, 0, "", a.none
	wait := min(max(a.ttl, minTTL), maxTTL)
	for _, addr := range a.addrs {
		q.addrs[addr] = now.Add(wait + q.grace)
	}
	over := q.limit()
	q.due = now.Add(wait)
	maps.DeleteFunc(q.addrs, func(_ netip.Addr, until time.Time) bool { return !until.After(now) })
	for _, until := range q.addrs { // ask again when an address is to go, however long the others live
		if until.Before(q.due) {
			q.due = until
		}
	}
	q.due = later(q.due, now.Add(minTTL))
	if over { // there is no keeping up: each answer costs every node
		q.due = later(q.due, now.Add(crowdedTTL))
	}
}

// fail takes a question without an answer.
func (q *question) fail(why string, now time.Time) {
	q.failures++
	q.failure = why
	q.due = now.Add(min(minTTL<<min(q.failures-1, 10), maxBackoff))
	if now.Sub(q.since) > staleFor {
		clear(q.addrs)
	}
}

// limit drops addresses beyond the most, those first that were seen longest ago. It is true if there were any.
func (q *question) limit() (over bool) {
	if len(q.addrs) <= mostAddresses {
		return false
	}
	order := slices.SortedFunc(maps.Keys(q.addrs), func(a, b netip.Addr) int {
		return cmp.Or(q.addrs[b].Compare(q.addrs[a]), a.Compare(b))
	})
	for _, a := range order[mostAddresses:] {
		delete(q.addrs, a)
	}
	return true
}

// trouble is why addresses may be missing or old, for users. It changes seldom, whatever the servers of a name do.
func (q *question) trouble() string {
	family := "IPv6"
	if q.is4 {
		family = "IPv4"
	}
	switch {
	case q.failures < tellAfter:
		return ""
	case len(q.addrs) > 0:
		return fmt.Sprintf("%s for %s: the addresses from before are accepted", q.failure, family)
	}
	return fmt.Sprintf("%s for %s", q.failure, family)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
