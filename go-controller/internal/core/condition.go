package core

import (
	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// status is what is known of the status of an object.
type status struct {
	observed cluster.Observed
	want     *cluster.Judged // nil until it was judged
	asked    allocate.Status // what was last asked for, so that it is asked for once
}

// observe records what an event says of an object's status. It is the first to see an event.
func (c *Core) observe(e cluster.Event) {
	o, ok := e.New.(cluster.Observable)
	if !ok {
		delete(c.statuses, e.Ref)
		return
	}
	s := c.statuses[e.Ref]
	if s == nil {
		s = &status{}
		c.statuses[e.Ref] = s
	}
	s.observed = o.Observe()
}

// Conditions lists the conditions that a batch has found and that the objects do not have.
func (c *Core) Conditions(b *Batch) []allocate.Patch {
	var out []allocate.Patch
	for _, j := range b.Judged {
		if s := c.statuses[j.Ref]; s != nil {
			s.want = &j
			out = append(out, c.condition(j.Ref)...)
		}
	}
	return out
}

// condition is the patch that an object's status needs, if any. It is not asked for twice: package write repeats what
// fails. A write that comes too late is refused, and the event of what was written instead leads here again.
func (c *Core) condition(r cluster.Ref) []allocate.Patch {
	s := c.statuses[r]
	if s == nil || s.want == nil {
		return nil
	}
	want := allocate.Status{Condition: s.want.Condition, Found: s.observed}
	want.Condition.Generation = s.observed.Generation
	if want.Condition == s.observed.Own {
		s.asked = allocate.Status{}
		return nil
	}
	if want == s.asked {
		return nil
	}
	s.asked = want
	return []allocate.Patch{{Ref: r, UID: s.want.UID, Status: &want}}
}
