package nb

import (
	"slices"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// placed gives each wanted row the UUID under which it is there, or is to be
// inserted. That is the derived one, but for a row that was deleted not long
// ago: it comes back under a stand-in, for the sake of whoever may still be
// about to hear that the first is gone. Rows that list those of other owners
// always keep theirs.
func (s *Schema) placed(v View, want []Row) []Row {
	moved := map[Ref]string{}
	for _, w := range want {
		ref := s.Ref(w.Model)
		if v.Row(ref) != nil || s.tables[ref.Table].shares() {
			continue
		}
		if uuid := s.place(v, w.Key, ref); uuid != ref.UUID {
			moved[ref] = uuid
		}
	}
	if len(moved) == 0 {
		return want
	}
	out := slices.Clone(want)
	for i, w := range out {
		if uuid, ok := moved[s.Ref(w.Model)]; ok {
			out[i].Model = s.withUUID(w.Model, uuid)
		}
		out[i].ListIn = slices.Clone(w.ListIn)
		for j, sl := range w.ListIn {
			if uuid, ok := moved[sl.In]; ok {
				out[i].ListIn[j].In.UUID = uuid
			}
		}
	}
	return out
}

// shares tells whether rows of the table list rows of other owners, which know
// them by their UUIDs. What a load balancer lists is its own owner's.
func (t *table) shares() bool { return len(t.slots) > 0 && t.name != nbdb.LoadBalancerTable }

// place is the UUID of a row that is not there under its derived one.
func (s *Schema) place(v View, k Key, derived Ref) string {
	free := derived.UUID
	spent := v.Spent(derived)
	for n := 1; n <= names.StandIns; n++ {
		r := Ref{derived.Table, names.StandIn(derived.UUID, n)}
		if m := v.Row(r); m != nil {
			if mark, marked := s.Mark(m); !marked || mark == k {
				return r.UUID
			}
			continue
		}
		if spent && !v.Spent(r) {
			free, spent = r.UUID, false
		}
	}
	return free
}

// withUUID is a copy of a row with another UUID.
func (s *Schema) withUUID(m model.Model, uuid string) model.Model {
	c := model.Clone(m)
	t, row := s.of(c)
	row.Field(t.uuid).SetString(uuid)
	return c
}
