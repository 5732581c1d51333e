package ovsdb

import (
	"maps"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// operation is one OVSDB operation and the owners it was made for.
type operation struct {
	ovsdb.Operation
	owners []nb.Owner
	// count is how many rows must be affected for the operation to have been carried out; -1 where none is fine too
	// (RFC 7047 section 5.2: a mutate whose condition matches nothing succeeds).
	count int
}

// operations is the plans as one transaction: inserts, then changes, then deletes; the memberships of one slot
// together.
func operations(schema *nb.Schema, plans []nb.Plan) []operation {
	var inserts, changes, deletes []operation
	slots := map[nb.Slot]*membership{}
	changed := changedRows(plans)
	for _, p := range plans {
		for _, rc := range p.Rows {
			switch rc.Verb {
			case nb.Insert:
				inserts = append(inserts, operation{insertOp(rc), []nb.Owner{p.Owner}, -1})
			case nb.Update:
				changes = append(changes, updateOps(rc, p.Owner)...)
			case nb.Delete:
				if !schema.DeletedByGC(rc.Key.Table) {
					deletes = append(deletes, operation{
						ovsdb.Operation{Op: ovsdb.OperationDelete, Table: rc.Key.Table, Where: byUUID(rc.UUID)}, []nb.Owner{p.Owner}, -1})
				}
			}
		}
		for _, m := range p.Members {
			if m.Implied && !changed[m.Slot.In] {
				continue
			}
			if slots[m.Slot] == nil {
				slots[m.Slot] = &membership{}
			}
			slots[m.Slot].take(m, p.Owner)
		}
	}
	for _, sl := range slices.SortedFunc(maps.Keys(slots), compareSlots) {
		changes = append(changes, slots[sl].operation(sl))
	}
	return slices.Concat(inserts, changes, deletes)
}

// changedRows is the rows that plans change otherwise than by taking out of a slot what goes.
func changedRows(plans []nb.Plan) map[nb.Ref]bool {
	out := map[nb.Ref]bool{}
	for _, p := range plans {
		for _, rc := range p.Rows {
			if rc.Verb == nb.Update {
				out[nb.Ref{Table: rc.Key.Table, UUID: rc.UUID}] = true
			}
		}
		for _, m := range p.Members {
			if !m.Implied {
				out[m.Slot.In] = true
			}
		}
	}
	return out
}

func compareSlots(a, b nb.Slot) int {
	return slices.Compare([]string{a.In.Table, a.In.UUID, a.Column}, []string{b.In.Table, b.In.UUID, b.Column})
}

// membership is what is to be added to and removed from one slot.
type membership struct {
	add, remove []string // UUIDs
	owners      []nb.Owner
}

func (m *membership) take(c nb.Membership, o nb.Owner) {
	if c.Remove {
		m.remove = append(m.remove, c.UUID)
	} else {
		m.add = append(m.add, c.UUID)
		m.owners = append(m.owners, o)
	}
}

func (m *membership) operation(sl nb.Slot) operation {
	op := operation{Operation: ovsdb.Operation{Op: ovsdb.OperationMutate, Table: sl.In.Table, Where: byUUID(sl.In.UUID)}, owners: m.owners, count: -1}
	if len(m.remove) > 0 {
		op.Mutations = append(op.Mutations, mutation(sl.Column, ovsdb.MutateOperationDelete, setValue(m.remove, true)))
	}
	if len(m.add) > 0 {
		op.Mutations = append(op.Mutations, mutation(sl.Column, ovsdb.MutateOperationInsert, setValue(m.add, true)))
		op.count = 1
	}
	return op
}

func byUUID(u string) []ovsdb.Condition {
	return []ovsdb.Condition{{Column: "_uuid", Function: ovsdb.ConditionEqual, Value: uuidValue(u)}}
}

func mutation(column string, how ovsdb.Mutator, value any) ovsdb.Mutation {
	return ovsdb.Mutation{Column: column, Mutator: how, Value: value}
}

func insertOp(rc nb.RowChange) ovsdb.Operation {
	row := ovsdb.Row{}
	for _, c := range rc.Columns {
		row[c.Column] = wholeValue(c)
	}
	return ovsdb.Operation{Op: ovsdb.OperationInsert, Table: rc.Key.Table, UUID: rc.UUID, Row: row}
}

// wholeValue is the value of a column that has none yet.
func wholeValue(c nb.ColumnChange) any {
	switch {
	case c.Put != nil:
		return newKeys(c)
	case c.Add != nil:
		return setValue(c.Add, c.UUIDs)
	default:
		return scalarValue(c)
	}
}

// updateOps is one update for the scalar columns and one mutate for the rest.
func updateOps(rc nb.RowChange, o nb.Owner) []operation {
	row := ovsdb.Row{}
	var ms []ovsdb.Mutation
	for _, c := range rc.Columns {
		if c.Add == nil && c.Remove == nil && c.Put == nil && c.Drop == nil {
			row[c.Column] = scalarValue(c)
			continue
		}
		// Members are added first: the server counts them after every mutation, and some sets must not be empty
		// (Logical_Router_Port.networks).
		if len(c.Add) > 0 {
			ms = append(ms, mutation(c.Column, ovsdb.MutateOperationInsert, setValue(c.Add, c.UUIDs)))
		}
		if len(c.Remove) > 0 {
			ms = append(ms, mutation(c.Column, ovsdb.MutateOperationDelete, setValue(c.Remove, c.UUIDs)))
		}
		if len(c.Drop) > 0 {
			ms = append(ms, mutation(c.Column, ovsdb.MutateOperationDelete, setValue(c.Drop, false)))
		}
		if len(c.Put) > 0 {
			ms = append(ms, mutation(c.Column, ovsdb.MutateOperationInsert, newKeys(c)))
		}
	}
	var out []operation
	if len(row) > 0 {
		out = append(out, operation{ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: rc.Key.Table, Where: byUUID(rc.UUID), Row: row}, []nb.Owner{o}, 1})
	}
	if len(ms) > 0 {
		out = append(out, operation{ovsdb.Operation{Op: ovsdb.OperationMutate, Table: rc.Key.Table, Where: byUUID(rc.UUID), Mutations: ms}, []nb.Owner{o}, 1})
	}
	return out
}

// scalarValue is the new value; an optional column without one is the empty set.
func scalarValue(c nb.ColumnChange) any {
	uuid, isText := c.New.(string)
	switch {
	case c.New == nil:
		return setValue(nil, false)
	case isText && c.UUIDs:
		return uuidValue(uuid)
	default:
		return c.New
	}
}

// newKeys is what a map column is to gain.
func newKeys(c nb.ColumnChange) any {
	if c.Numbers {
		return mapValue(c.Integers())
	}
	return mapValue(c.Put)
}
