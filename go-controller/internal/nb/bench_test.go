package nb_test

import (
	"fmt"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// indexed is a view that answers without a search, as the live one does: what is left is what planning costs.
type indexed struct {
	rows  map[nb.Ref]model.Model
	owned map[nb.Owner][]nb.Ref
	lists map[nb.Slot]map[string]bool
	in    map[nb.Ref][]nb.Slot
}

func (v indexed) Owned(o nb.Owner) []nb.Ref         { return v.owned[o] }
func (v indexed) Row(r nb.Ref) model.Model          { return v.rows[r] }
func (v indexed) Rows(string) []model.Model         { return nil }
func (v indexed) Parents(r nb.Ref) []nb.Slot        { return v.in[r] }
func (v indexed) Lists(s nb.Slot, uuid string) bool { return v.lists[s][uuid] }
func (v indexed) Spent(nb.Ref) bool                 { return false }
func (v indexed) Lacks(string, string) bool         { return false }

func newIndexed() indexed {
	return indexed{rows: map[nb.Ref]model.Model{}, owned: map[nb.Owner][]nb.Ref{},
		lists: map[nb.Slot]map[string]bool{}, in: map[nb.Ref][]nb.Slot{}}
}

// put has a row and its memberships be there.
func (v indexed) put(s *nb.Schema, r nb.Row) {
	ref := s.Ref(r.Model)
	v.rows[ref] = r.Model
	v.owned[r.Key.Owner] = append(v.owned[r.Key.Owner], ref)
	for _, sl := range r.ListIn {
		if v.lists[sl] == nil {
			v.lists[sl] = map[string]bool{}
		}
		v.lists[sl][ref.UUID] = true
		v.in[ref] = append(v.in[ref], sl)
	}
}

// BenchmarkPlanOfPod plans a pod's port on its node's switch:
//
//	go test -run '^$' -bench Plan -benchmem ./go-controller/internal/nb
func BenchmarkPlanOfPod(b *testing.B) {
	s := nb.NewSchema()
	v := newIndexed()
	sw := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: names.NodeRow(nbdb.LogicalSwitchTable, "n1", names.RoleSwitch, "u")}
	node := nb.Key{Table: sw.Table, Owner: nb.Owner{Kind: names.KindNode, Name: "n1"}, Role: names.RoleSwitch}
	v.put(s, s.NewRow(node, &nbdb.LogicalSwitch{UUID: sw.UUID, Name: "n1"}))
	pod := func(i int) nb.Row {
		name := fmt.Sprintf("default/web-%d", i)
		return s.NewRow(key(nbdb.LogicalSwitchPortTable, names.KindPod, name, names.RolePort), &nbdb.LogicalSwitchPort{
			UUID: names.RowUUID(nbdb.LogicalSwitchPortTable, names.KindPod, name, names.RolePort, "uid"), Name: name,
			Addresses: []string{"0a:58:0a:f4:00:03 10.244.0.3"}, PortSecurity: []string{"0a:58:0a:f4:00:03 10.244.0.3"},
			Options: map[string]string{"requested-chassis": "n1"}}, nb.Slot{In: sw, Column: "ports"})
	}
	plan := func(b *testing.B, r nb.Row, empty bool) {
		want, inserted := []nb.Row{r}, nb.Scope{}
		b.ReportAllocs()
		for range b.N {
			if p, err := s.Plan(v, r.Key.Owner, want, inserted); err != nil || p.Empty() != empty {
				b.Fatal(err, p)
			}
		}
	}
	there := pod(0)
	v.put(s, there)
	b.Run("new", func(b *testing.B) { plan(b, pod(1), false) })
	b.Run("there", func(b *testing.B) { plan(b, there, true) })
}
