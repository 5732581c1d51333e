package translate

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Translator answers, for one kind of owner, which rows it wants and which
// changes can alter that answer. All methods are pure functions of the state.
type Translator interface {
	// Kind is the kind of owner this translator answers for.
	Kind() names.Kind
	// Owners lists every owner of the kind, for a full pass.
	Owners(s *cluster.State) []nb.Owner
	// Affected lists the owners whose Rows may differ after c, which s already
	// contains. Naming one too many costs time; one too few is a bug.
	Affected(s *cluster.State, c cluster.Change) []nb.Owner
	// Rows is what the owner wants; nothing for an owner that is gone. An error
	// means that the owner's object is such that no rows can be made of it.
	Rows(s *cluster.State, o nb.Owner) ([]nb.Row, error)
}

// Set is the translators of a program, by kind.
type Set map[names.Kind]Translator

// NewSet makes a Set.
func NewSet(ts ...Translator) Set {
	out := Set{}
	for _, t := range ts {
		out[t.Kind()] = t
	}
	return out
}

// Owners lists every owner of every kind in order.
func (ts Set) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for _, k := range names.Kinds() {
		if t, ok := ts[k]; ok {
			out = append(out, t.Owners(s)...)
		}
	}
	slices.SortFunc(out, nb.Owner.Compare)
	return out
}

// Affected lists the owners of every kind that c may alter.
func (ts Set) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	for _, k := range names.Kinds() {
		if t, ok := ts[k]; ok {
			out = append(out, t.Affected(s, c)...)
		}
	}
	return out
}

// Rows is what o wants. An owner of a kind that no translator answers for
// wants nothing: its rows are left over from another version.
func (ts Set) Rows(s *cluster.State, o nb.Owner) ([]nb.Row, error) {
	t, ok := ts[o.Kind]
	if !ok {
		return nil, nil
	}
	return t.Rows(s, o)
}
