package ovsdb

import (
	"context"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// MarkFilled notes that a database which was empty has all rows that the master wants. It sets the sequence number of
// NB_Global to 1. ovn-northd copies that to the Southbound database, in the transaction that makes the rows there
// (ovn-nb(5), column nb_cfg). Nothing changes where there is a number already, or no row of NB_Global.
func (s *Session) MarkFilled(ctx context.Context) error {
	op := ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: nbdb.NBGlobalTable,
		Where: []ovsdb.Condition{{Column: "nb_cfg", Function: ovsdb.ConditionEqual, Value: 0}},
		Row:   ovsdb.Row{"nb_cfg": 1}}
	ops := append(s.held.unchanged(), operation{op, nil, -1})
	results, err := s.send(ctx, ops)
	if err == nil {
		err = rejection(results, ops)
	}
	if err != nil {
		return fmt.Errorf("noting that the Northbound database is filled: %w", err)
	}
	return nil
}
