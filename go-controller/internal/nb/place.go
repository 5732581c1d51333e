package nb

import (
	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// placed gives each wanted row the UUID under which it is there, or is to be
// inserted. That is the derived one, but for a row that was deleted not long
// ago: it comes back under a stand-in, for the sake of whoever may still be
// about to hear that the first is gone. Rows that others refer to by UUID
// always keep theirs.
func (s *Schema) placed(v View, want []Row) []Row {
	var out []Row
	for i, w := range want {
		ref := s.Ref(w.Model)
		if v.Row(ref) != nil || len(s.tables[ref.Table].slots) > 0 {
			continue
		}
		if uuid := s.place(v, w.Key, ref); uuid != ref.UUID {
			if out == nil {
				out = append(out, want...)
			}
			out[i].Model = s.withUUID(w.Model, uuid)
		}
	}
	if out == nil {
		return want
	}
	return out
}

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
