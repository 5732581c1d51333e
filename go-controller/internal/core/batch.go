package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Batch collects the plans of one transaction.
type Batch struct {
	Plans   []nb.Plan
	Done    []nb.Owner // owners whose rows are as they should be
	Failed  []Failure
	Reports []Report
	Ops     int // the number of operations of all plans, at most
	Full    int // the number at which only owners that must change together with others are taken, too
	// Hold leaves ports and reserved addresses where they are, and selectors their rows: see cluster.Held.
	Hold bool

	core     *Core
	verdicts map[nb.Owner]verdict
	size     int // see largest
	view     nb.View
	claim    func([]nb.Row)
	inserted nb.Scope
}

// Report is what is to be reported to users about an owner; no Problems when an earlier report no longer holds.
type Report struct {
	Owner    nb.Owner
	Problems []cluster.Problem
}

// Failure is an owner that could not be planned.
type Failure struct {
	Owner nb.Owner
	Err   error
}

// MissingParent is the slot that a failed owner waits for; ok is false when it failed for another reason.
func (f Failure) MissingParent() (s nb.Slot, ok bool) {
	var missing *nb.MissingParentError
	if errors.As(f.Err, &missing) {
		return missing.Slot, true
	}
	return nb.Slot{}, false
}

// NewBatch is an empty batch for a database as v shows it. claim, unless nil, is called with the rows that each owner
// wants.
func (c *Core) NewBatch(v nb.View, claim func([]nb.Row)) *Batch {
	return &Batch{Full: FullOps, Hold: c.State.Held.Any || c.State.Held.Multi, core: c, view: v, claim: claim,
		inserted: nb.Scope{}, verdicts: map[nb.Owner]verdict{}}
}

// FullOps is the number of operations at which a transaction is full.
const FullOps = 1000

// largest bounds a transaction of owners that change together. A membership counts 1, and a row rowSize. ovsdb-server
// takes 10,000 pods that change their groups, 40,000 memberships, in about a second.
const (
	largest = 100_000
	rowSize = 5
)

// TakesAny is false when the transaction has no room for any owner of a kind.
func (b *Batch) TakesAny(k names.Kind) bool {
	return !b.IsFull() || b.size < largest && b.core.translators.Atomicity(k) != translate.Separate
}

// IsFull is true when the transaction takes only owners that must change together with others (translate.Atomic).
func (b *Batch) IsFull() bool { return b.Ops >= b.Full }

// Takes is true when the transaction has room for an owner.
func (b *Batch) Takes(o nb.Owner) bool {
	return !b.IsFull() || b.TakesAny(o.Kind) &&
		(b.core.translators.Atomicity(o.Kind) == translate.OfAll || len(b.view.Owned(o)) > 0)
}

// Add plans an owner. It does not plan, and returns true for, an owner that wants nothing any more but still has rows:
// the caller hands that to AddVanished.
func (b *Batch) Add(o nb.Owner) (vanished bool) { return b.add(o, false) }

// AddVanished plans an owner that Add left out. Add such owners after all others and in reverse order: a row that
// others refer to must be deleted after them.
func (b *Batch) AddVanished(o nb.Owner) { b.add(o, true) }

// Drop plans the deletion of an owner's rows, whatever it wants.
func (b *Batch) Drop(o nb.Owner) { b.plan(o, nil) }

func (b *Batch) add(o nb.Owner, last bool) (vanished bool) {
	want, err := b.core.Rows(o)
	if err == nil && len(want.Rows) == 0 && !last && len(b.view.Owned(o)) > 0 {
		return true
	}
	if len(want.Reports) > 0 || b.core.reported[o] != "" {
		b.Reports = append(b.Reports, Report{o, want.Reports})
	}
	if want.Judged != nil {
		b.judge(o, *want.Judged)
	}
	if err != nil {
		b.Failed = append(b.Failed, Failure{o, fmt.Errorf("translating %s: %w", o, err)})
		return false
	}
	if b.claim != nil {
		b.claim(want.Rows)
	}
	b.plan(o, want.Rows)
	return false
}

func (b *Batch) plan(o nb.Owner, rows []nb.Row) {
	p, err := b.core.Schema.Plan(b.view, o, rows, b.inserted)
	if b.Hold {
		p = holding(p, b.core.State.Config.Multitenant, b.core.reserved)
	}
	switch {
	case err != nil:
		b.Failed = append(b.Failed, Failure{o, fmt.Errorf("planning %s: %w", o, err)})
	case p.Empty():
		b.Done = append(b.Done, o)
	default:
		b.Plans = append(b.Plans, p)
		b.Ops += p.Ops()
		b.size += rowSize*len(p.Rows) + len(p.Members)
	}
}

// Settle completes the batch: a row that one plan deletes and another plan keeps is kept.
func (b *Batch) Settle() {
	var done []nb.Owner
	b.Plans, done = nb.Settled(b.Plans)
	b.Done = append(b.Done, done...)
}

// Err joins the failures.
func (b *Batch) Err() error {
	errs := make([]error, len(b.Failed))
	for i, f := range b.Failed {
		errs[i] = f.Err
	}
	return errors.Join(errs...)
}

// Plan plans owners, each once, as one transaction. The plans are in the order of their owners. Owners for which gone
// (which may be nil) is true lose their rows.
func (c *Core) Plan(v nb.View, owners []nb.Owner, gone func(nb.Owner) bool) *Batch {
	b := c.NewBatch(v, nil)
	owners = slices.Clone(owners)
	slices.SortFunc(owners, nb.Owner.Compare)
	var vanished []nb.Owner
	for _, o := range slices.Compact(owners) {
		if gone != nil && gone(o) || b.Add(o) {
			vanished = append(vanished, o)
		}
	}
	slices.Reverse(vanished)
	for _, o := range vanished {
		if gone != nil && gone(o) {
			b.Drop(o)
		} else {
			b.AddVanished(o)
		}
	}
	b.Settle()
	slices.SortFunc(b.Plans, func(x, y nb.Plan) int { return x.Owner.Compare(y.Owner) })
	return b
}

// Compare plans one owner alone. The rows of other owners that are to list its rows are assumed to exist.
func (c *Core) Compare(v nb.View, o nb.Owner) (nb.Plan, error) {
	want, err := c.Rows(o)
	if err != nil {
		return nb.Plan{}, fmt.Errorf("translating %s: %w", o, err)
	}
	others := nb.Scope{}
	for _, r := range want.Rows {
		for _, slot := range r.ListIn {
			if v.Row(c.Schema.Find(v, slot.In)) == nil {
				others[slot.In] = slot.In.UUID
			}
		}
	}
	plan, err := c.Schema.Plan(v, o, want.Rows, others)
	if err != nil {
		return nb.Plan{}, fmt.Errorf("comparing the rows of %s: %w", o, err)
	}
	return plan, nil
}

// News lists what the reports of b contain that was not reported yet: each report of an owner counts once, until it
// changes.
func (c *Core) News(b *Batch) []cluster.Problem {
	var out []cluster.Problem
	for _, r := range b.Reports {
		text := ""
		for _, p := range r.Problems {
			text += p.UID + p.Reason + p.Message
		}
		if c.reported[r.Owner] != text {
			out = append(out, r.Problems...)
		}
		if text == "" {
			delete(c.reported, r.Owner)
		} else {
			c.reported[r.Owner] = text
		}
	}
	return out
}
