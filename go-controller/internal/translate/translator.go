package translate

import (
	"cmp"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Translator defines, for one kind of owner, which rows an owner wants and which changes can alter them. All methods
// are pure functions of the state.
type Translator interface {
	// Kind is the kind of owner this translator answers for.
	Kind() names.Kind
	// Depends names the changes that can alter the rows of any owner of the kind.
	Depends() Dependencies
	// Owners lists every owner of the kind, for a full pass.
	Owners(s *cluster.State) []nb.Owner
	// Affected lists the owners whose Rows may differ after c. The state already contains c, and Depends names it. One
	// owner too many costs time; one too few is a bug.
	Affected(s *cluster.State, c cluster.Change) []nb.Owner
	// Rows is what the owner wants: nothing when the owner is gone. A user's mistake is a report. An error is a bug, or a
	// configuration that no rows can be made of.
	Rows(s *cluster.State, o nb.Owner) (Rows, error)
}

// Indexed is a Translator that has indexes of its own.
type Indexed interface {
	// Indexes makes the indexes, for a new State.
	Indexes() []cluster.Index
}

// Atomic is a Translator whose owners change in one transaction with the owners of all other such kinds, however many
// there are. Without that, the network could for a moment deny what it allows before and after the change.
type Atomic interface {
	// Atomic tells which owners of the kind the transaction must have.
	Atomic() Atomicity
}

// Atomicity tells which owners of a kind can't wait for the next transaction.
type Atomicity int

// The kinds of a Translator that is not Atomic are Separate.
const (
	Separate   Atomicity = iota
	OfExisting           // those that have rows: a new owner's rows affect nobody before all of them are there
	OfAll                // all
)

// Dependencies are changes: those of objects of some kinds and of what was granted to them, and those that have a topic
// of some subjects.
type Dependencies struct {
	Kinds    []cluster.Kind
	Subjects []cluster.Subject
}

// has is true when c is among the dependencies.
func (d Dependencies) has(c cluster.Change) bool {
	return slices.Contains(d.Kinds, c.Ref.Kind) || slices.ContainsFunc(d.Subjects, c.Concerns)
}

// Rows is the rows that an owner wants, and what is reported to users about it: by Events, and by a condition.
type Rows struct {
	Rows    []nb.Row
	Reports []cluster.Problem
	Judged  *cluster.Judged // nil when the API has no conditions for the owner's object
}

// Set is the translators of a program, in the order of the kinds of owners.
type Set []entry

// entry is a translator and what it says of itself.
type entry struct {
	Translator
	depends Dependencies
	atomic  Atomicity
}

// NewSet makes a Set.
func NewSet(ts ...Translator) Set {
	out := make(Set, len(ts))
	for i, t := range ts {
		out[i] = entry{t, t.Depends(), Separate}
		if a, ok := t.(Atomic); ok {
			out[i].atomic = a.Atomic()
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int {
		return cmp.Or(nb.Owner{Kind: a.Kind()}.Compare(nb.Owner{Kind: b.Kind()}), cmp.Compare(a.Kind(), b.Kind()))
	})
	return out
}

// With is the set and one more translator.
func (ts Set) With(t Translator) Set {
	all := []Translator{t}
	for _, e := range ts {
		all = append(all, e.Translator)
	}
	return NewSet(all...)
}

// Indexes makes the translators' own indexes, for a new State.
func (ts Set) Indexes() []cluster.Index {
	var out []cluster.Index
	for _, t := range ts {
		if i, ok := t.Translator.(Indexed); ok {
			out = append(out, i.Indexes()...)
		}
	}
	return out
}

// Atomicity tells which owners of a kind can't wait for the next transaction.
func (ts Set) Atomicity(k names.Kind) Atomicity {
	for _, t := range ts {
		if t.Kind() == k {
			return t.atomic
		}
	}
	return Separate
}

// Owners lists every owner of every kind in order.
func (ts Set) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for _, t := range ts {
		out = append(out, t.Owners(s)...)
	}
	slices.SortFunc(out, nb.Owner.Compare)
	return out
}

// Affected lists the owners of every kind that c may alter.
func (ts Set) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	for _, t := range ts {
		if t.depends.has(c) {
			out = append(out, t.Affected(s, c)...)
		}
	}
	return out
}

// Rows is what o wants. An owner of a kind without a translator wants nothing: its rows are left over from another
// version.
func (ts Set) Rows(s *cluster.State, o nb.Owner) (Rows, error) {
	for _, t := range ts {
		if t.Kind() == o.Kind {
			return t.Rows(s, o)
		}
	}
	return Rows{}, nil
}
