package ovsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// SetGlobalOption sets one of NB_Global's options to a value. It changes nothing where the option has this value.
// Options of other names are left alone. It is an error if there is no row of NB_Global yet: ovn-northd makes it.
func (s *Session) SetGlobalOption(ctx context.Context, key, value string) error {
	want := ovsdb.OvsMap{GoMap: map[any]any{key: value}}
	op := ovsdb.Operation{Op: ovsdb.OperationMutate, Table: nbdb.NBGlobalTable,
		Where: []ovsdb.Condition{{Column: "nb_cfg", Function: ovsdb.ConditionGreaterThanOrEqual, Value: 0}}, // any
		Mutations: []ovsdb.Mutation{
			{Column: "options", Mutator: ovsdb.MutateOperationDelete, Value: ovsdb.OvsSet{GoSet: []any{key}}},
			{Column: "options", Mutator: ovsdb.MutateOperationInsert, Value: want},
		}}
	results, err := s.changeGlobal(ctx, op)
	if err == nil && results[0].Count == 0 {
		err = errors.New("the table has no row yet")
	}
	if err != nil {
		return fmt.Errorf("setting option %s of NB_Global to %q: %w", key, value, err)
	}
	return nil
}

// MarkFilled notes that a database which was empty has all rows that the master wants. It sets the sequence number of
// NB_Global to 1. ovn-northd copies that to the Southbound database, in the transaction that makes the rows there
// (ovn-nb(5), column nb_cfg). Nothing changes where there is a number already, or no row of NB_Global.
func (s *Session) MarkFilled(ctx context.Context) error {
	op := ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: nbdb.NBGlobalTable,
		Where: []ovsdb.Condition{{Column: "nb_cfg", Function: ovsdb.ConditionEqual, Value: 0}},
		Row:   ovsdb.Row{"nb_cfg": 1}}
	if _, err := s.changeGlobal(ctx, op); err != nil {
		return fmt.Errorf("noting that the Northbound database is filled: %w", err)
	}
	return nil
}

// changeGlobal sends operations on the row of NB_Global, which has no owner, and returns their results. A leader that
// was replaced is refused.
func (s *Session) changeGlobal(ctx context.Context, global ...ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	ops := s.unchanged()
	first := len(ops)
	for _, op := range global {
		ops = append(ops, operation{op, nil, -1})
	}
	results, err := s.send(ctx, ops)
	if err != nil {
		return nil, err
	}
	if err := rejection(results, ops); err != nil {
		return nil, err
	}
	return results[first:], nil
}
