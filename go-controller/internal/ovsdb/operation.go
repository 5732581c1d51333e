package ovsdb

import (
	"maps"
	"slices"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// operation is one OVSDB operation and the owners whose plans it carries out.
type operation struct {
	ovsdb.Operation
	owners []nb.Owner
	// count is how many rows the operation must affect. It is -1 where none is fine, too: an operation whose condition
	// matches nothing succeeds (RFC 7047 section 5.2).
	count int
}

// operations is the plans as one transaction: inserts, then changes, then deletes. The memberships of a slot become one
// operation.
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
					deletes = append(deletes, operation{on(ovsdb.OperationDelete, rc.Ref()), []nb.Owner{p.Owner}, -1})
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
	for _, sl := range slices.SortedFunc(maps.Keys(slots), nb.Slot.Compare) {
		changes = append(changes, slots[sl].operation(sl))
	}
	return slices.Concat(inserts, changes, deletes)
}

// changedRows is the rows that plans change, apart from what is implied by the deletion of other rows.
func changedRows(plans []nb.Plan) map[nb.Ref]bool {
	out := map[nb.Ref]bool{}
	for _, p := range plans {
		for _, rc := range p.Rows {
			if rc.Verb == nb.Update {
				out[rc.Ref()] = true
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
	op := operation{on(ovsdb.OperationMutate, sl.In), m.owners, -1}
	if len(m.remove) > 0 {
		op.Mutations = append(op.Mutations, mutation(sl.Column, ovsdb.MutateOperationDelete, setValue(m.remove, true)))
	}
	if len(m.add) > 0 {
		op.Mutations = append(op.Mutations, mutation(sl.Column, ovsdb.MutateOperationInsert, setValue(m.add, true)))
		op.count = 1
	}
	return op
}

// on is an operation on one row.
func on(op string, r nb.Ref) ovsdb.Operation {
	where := []ovsdb.Condition{{Column: "_uuid", Function: ovsdb.ConditionEqual, Value: uuidValue(r.UUID)}}
	return ovsdb.Operation{Op: op, Table: r.Table, Where: where}
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

// updateOps is at most one update, for scalar columns, and one mutate, for the rest.
func updateOps(rc nb.RowChange, o nb.Owner) []operation {
	row := ovsdb.Row{}
	var ms []ovsdb.Mutation
	for _, c := range rc.Columns {
		if c.Add == nil && c.Remove == nil && c.Put == nil && c.Drop == nil {
			row[c.Column] = scalarValue(c)
			continue
		}
		// Members are added before others are removed: the server counts them after every mutation, and some sets must
		// not be empty (Logical_Router_Port.networks).
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
		update := on(ovsdb.OperationUpdate, rc.Ref())
		update.Row = row
		out = append(out, operation{update, []nb.Owner{o}, 1})
	}
	if len(ms) > 0 {
		mutate := on(ovsdb.OperationMutate, rc.Ref())
		mutate.Mutations = ms
		out = append(out, operation{mutate, []nb.Owner{o}, 1})
	}
	return out
}

// scalarValue is the new value. An optional column without a value is the empty set.
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

// newKeys is the keys that a map column gains.
func newKeys(c nb.ColumnChange) any {
	if c.Numbers {
		return mapValue(c.Integers())
	}
	return mapValue(c.Put)
}
