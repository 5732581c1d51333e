package ovsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Approved is the digest of the removal that an operator approved, as the cluster router records it; "" for none.
func (s *Session) Approved() string {
	e, err := s.Epoch()
	if err != nil {
		return ""
	}
	return e.externalIDs[names.ApprovalKey]
}

// Approve records the digest of a removal.
func (s *Session) Approve(ctx context.Context, digest string) error {
	e, err := s.Epoch()
	if err != nil {
		return err
	}
	if e.router == "" {
		return errors.New("approving a removal: the Northbound database has no cluster router")
	}
	op := on(ovsdb.OperationMutate, nb.Ref{Table: nbdb.LogicalRouterTable, UUID: e.router})
	op.Mutations = []ovsdb.Mutation{
		mutation("external_ids", ovsdb.MutateOperationDelete, setValue([]string{names.ApprovalKey}, false)),
		mutation("external_ids", ovsdb.MutateOperationInsert, mapValue(map[string]string{names.ApprovalKey: digest})),
	}
	if _, err := s.transact(ctx, []operation{{op, nil, -1}}, nil); err != nil {
		return fmt.Errorf("approving a removal: %w", err)
	}
	return nil
}
