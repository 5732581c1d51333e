package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Sequence is a sequence number in NB_Global. OVN's programs copy it when they have carried out everything that was in
// the Northbound database together with it (ovn-nb(5), table NB_Global, "Configuration Status").
type Sequence struct {
	Number int
	row    string // the UUID of the row of NB_Global
}

// Follower is a part of OVN that reports the sequence numbers that it has carried out: a column of NB_Global.
type Follower string

// The followers.
const (
	Northd      Follower = "sb_cfg" // ovn-northd, which writes the Southbound database
	Controllers Follower = "hv_cfg" // the ovn-controllers of all nodes, which install flows
)

// errNotFilled says that there is no sequence number yet: see MarkFilled.
var errNotFilled = errors.New("the Northbound database has no sequence number yet")

// ErrBehind says that a follower has not carried out what it should have by now.
var ErrBehind = errors.New("OVN has not followed the Northbound database")

// errAnswer says that a server's answer to a select is not what the schema promises.
const errAnswer = sessionError("the server's answer has no sequence number")

// RaiseSequence raises the sequence number by one. Each ovn-controller writes to the Southbound database because of it.
// It fails where MarkFilled has not set a first number. A leader that was replaced is refused. It may run beside
// Transact and Raise.
func (s *Session) RaiseSequence(ctx context.Context) (q Sequence, err error) {
	where := []ovsdb.Condition{{Column: "nb_cfg", Function: ovsdb.ConditionGreaterThan, Value: 0}}
	results, err := s.changeGlobal(ctx,
		ovsdb.Operation{Op: ovsdb.OperationMutate, Table: nbdb.NBGlobalTable, Where: where,
			Mutations: []ovsdb.Mutation{mutation("nb_cfg", ovsdb.MutateOperationAdd, 1)}},
		ovsdb.Operation{Op: ovsdb.OperationSelect, Table: nbdb.NBGlobalTable, Where: where,
			Columns: []string{"_uuid", "nb_cfg"}})
	if err == nil {
		q, err = sequence(results[1].Rows)
	}
	if err != nil {
		return q, fmt.Errorf("raising the sequence number of NB_Global: %w", err)
	}
	return q, nil
}

// sequence is the one that a select has found.
func sequence(rows []ovsdb.Row) (Sequence, error) {
	if len(rows) == 0 {
		return Sequence{}, errNotFilled
	}
	number, isNumber := rows[0]["nb_cfg"].(float64) // JSON has no other
	row, isUUID := rows[0]["_uuid"].(ovsdb.UUID)
	if !isNumber || !isUUID {
		return Sequence{}, fmt.Errorf("%w: %v", errAnswer, rows[0])
	}
	return Sequence{int(number), row.GoUUID}, nil
}

// Followed waits until a follower has carried out everything up to a sequence number. After the time within, rounded to
// milliseconds, it fails with ErrBehind. The server does the waiting: nothing is polled.
func (s *Session) Followed(ctx context.Context, q Sequence, by Follower, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within+transactTimeout)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	op := wait(ovsdb.Operation{Op: ovsdb.OperationWait, Table: nbdb.NBGlobalTable, Where: []ovsdb.Condition{
		{Column: string(by), Function: ovsdb.ConditionGreaterThanOrEqual, Value: q.Number},
	}}, ovsdb.WaitConditionEqual, "_uuid", uuidValue(q.row))
	milliseconds := int(within.Milliseconds())
	op.Timeout = &milliseconds
	results, err := s.conn.Transact(ctx, op.Operation) // not by send: a server that waits is not one that is busy
	if err == nil {
		err = rejection(results, []operation{op})
	}
	switch {
	case errors.Is(err, ErrFenced): // the error of a wait: it has timed out
		return fmt.Errorf("waiting %s for sequence number %d in %s: %w", within, q.Number, by, ErrBehind)
	case err != nil:
		return fmt.Errorf("waiting for sequence number %d in %s: %w", q.Number, by, err)
	}
	return nil
}
