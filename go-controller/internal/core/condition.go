package core

import (
	"reflect"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// status is what is known of the status of an object.
type status struct {
	observed cluster.Observed
	want     *cluster.Judged // nil until it was judged
	asked    allocate.Status // what was last asked for, so that it is asked for once
	change   int             // number of the last change of what the object says, see Core.changes
}

// verdict is the conditions that an object is to have once the rows of its owner are in the database.
type verdict struct {
	cluster.Judged
	change int // of the status when the object was judged
}

// judge records the conditions for what the object says now.
func (b *Batch) judge(o nb.Owner, j cluster.Judged) {
	if s := b.core.statuses[j.Ref]; s != nil {
		b.verdicts[o] = verdict{j, s.change}
	}
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

// Conditions lists the conditions that objects lack, of those that a batch has found. The owners are those whose rows
// are in the database: a condition must not say more than that. An object that has changed meanwhile is judged again
// later.
func (c *Core) Conditions(b *Batch, owners []nb.Owner) []allocate.Patch {
	var out []allocate.Patch
	for _, o := range owners {
		v, ok := b.verdicts[o]
		if !ok {
			continue
		}
		if s := c.statuses[v.Ref]; s != nil && s.change == v.change {
			s.want = &v.Judged
			out = append(out, c.condition(v.Ref)...)
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
	want := allocate.Status{Conditions: slices.Clone(s.want.Conditions), Found: s.observed}
	for i := range want.Conditions {
		want.Conditions[i].Generation = s.observed.Generation
	}
	if slices.Equal(want.Conditions, s.observed.Own) {
		s.asked = allocate.Status{}
		return nil
	}
	if reflect.DeepEqual(want, s.asked) {
		return nil
	}
	s.asked = want
	return []allocate.Patch{{Ref: r, UID: s.want.UID, Status: &want}}
}
