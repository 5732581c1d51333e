package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// ErrFenced says that the leader epoch in the database is not the one that a transaction waited on. Nothing of the
// transaction was carried out.
var ErrFenced = errors.New("the leader epoch in the Northbound database has changed")

// waitFailed is the error of a wait operation whose condition does not hold (RFC 7047 section 5.2.6).
const waitFailed = "timed out"

// Epoch is who may write, as the cluster router records it.
type Epoch struct {
	Number uint64 // 0: nobody has raised it
	Leader string // the identity of the master that raised it
	UID    string // of the cluster that the database is for; "" while that is not recorded

	router      string            // the row that records it; "" when there is no cluster router
	externalIDs map[string]string // of that row
}

// ErrOtherCluster says that a database is not this cluster's.
var ErrOtherCluster = errors.New("the Northbound database belongs to another cluster")

// Of is the error that the database is recorded for another cluster than that of a UID; nil if either is not known.
func (e Epoch) Of(uid string) error {
	if e.UID == "" || uid == "" || e.UID == uid {
		return nil
	}
	return fmt.Errorf("%w: it is recorded for the cluster whose namespace kube-system has the UID %s, and here that "+
		"UID is %s: check --kubeconfig and --nb-address; --adopt makes the database this cluster's", ErrOtherCluster,
		e.UID, uid)
}

// Epoch is the one in the copy.
func (s *Session) Epoch() (Epoch, error) {
	uuid, err := s.ClusterRouter()
	if err != nil {
		return Epoch{}, err
	}
	r, ok := s.View().Row(nb.Ref{Table: nbdb.LogicalRouterTable, UUID: uuid}).(*nbdb.LogicalRouter)
	if !ok || r == nil {
		return Epoch{}, nil
	}
	e := Epoch{Leader: r.ExternalIDs[names.LeaderKey], UID: r.ExternalIDs[names.UIDKey], router: uuid,
		externalIDs: maps.Clone(r.ExternalIDs)}
	e.Number, _ = strconv.ParseUint(r.ExternalIDs[names.EpochKey], 10, 64) // what is no number counts as nobody's
	return e, nil
}

// Raise makes the leader of next the only one who can write, by a transaction of its own. From then on every
// transaction of the session waits on next. Raise fails with ErrFenced when the epoch is no longer seen, which the
// caller has read before it made sure that it may lead. Where there is no cluster router yet, plans must insert it.
func (s *Session) Raise(ctx context.Context, seen, next Epoch, plans []nb.Plan) (Outcome, error) {
	next.router = seen.router
	var first []operation
	if seen.router != "" {
		first, plans = []operation{seen.whole(), next.write()}, nil
	} else {
		router, err := next.insert(plans)
		if err != nil {
			return Outcome{}, err
		}
		first, next.router = []operation{noRouter()}, router
	}
	out, err := s.transact(ctx, first, plans)
	if err != nil {
		return out, fmt.Errorf("raising the leader epoch to %d: %w", next.Number, err)
	}
	s.held.Store(&next)
	return out, nil
}

// record is the epoch as external_ids.
func (e Epoch) record() map[string]string {
	out := map[string]string{names.EpochKey: strconv.FormatUint(e.Number, 10), names.LeaderKey: e.Leader}
	if e.UID != "" {
		out[names.UIDKey] = e.UID
	}
	return out
}

// unchanged waits on the epoch that the session has raised, if it has.
func (s *Session) unchanged() []operation {
	if held := s.held.Load(); held != nil {
		return held.unchanged()
	}
	return nil
}

// unchanged waits on the epoch; nothing for the zero Epoch.
func (e Epoch) unchanged() []operation {
	if e.router == "" {
		return nil
	}
	op := on(ovsdb.OperationWait, nb.Ref{Table: nbdb.LogicalRouterTable, UUID: e.router})
	op.Where = append(op.Where, ovsdb.Condition{
		Column: "external_ids", Function: ovsdb.ConditionIncludes, Value: mapValue(e.record()),
	})
	return []operation{wait(op, ovsdb.WaitConditionEqual, "_uuid", uuidValue(e.router))}
}

// whole waits on all external_ids of the row: the absence of a key can't be asked for alone.
func (e Epoch) whole() operation {
	op := on(ovsdb.OperationWait, nb.Ref{Table: nbdb.LogicalRouterTable, UUID: e.router})
	return wait(op, ovsdb.WaitConditionEqual, "external_ids", mapValue(e.externalIDs))
}

// noRouter waits on there being no cluster router. The library does not send an empty list of rows. So the wait is on
// the value of a column that no cluster router has set: there must not be exactly that one.
func noRouter() operation {
	op := ovsdb.Operation{Op: ovsdb.OperationWait, Table: nbdb.LogicalRouterTable, Where: []ovsdb.Condition{{
		Column: "external_ids", Function: ovsdb.ConditionIncludes,
		Value: mapValue(map[string]string{names.KeyClusterRouter: "yes"}),
	}}}
	return wait(op, ovsdb.WaitConditionNotEqual, "enabled", setValue(nil, false))
}

// wait completes a wait operation that does not wait: the condition holds at once or never.
func wait(op ovsdb.Operation, until ovsdb.WaitCondition, column string, value any) operation {
	now := 0
	op.Timeout, op.Until, op.Columns, op.Rows = &now, string(until), []string{column}, []ovsdb.Row{{column: value}}
	return operation{op, nil, -1}
}

// write records the epoch in the row.
func (e Epoch) write() operation {
	op := on(ovsdb.OperationMutate, nb.Ref{Table: nbdb.LogicalRouterTable, UUID: e.router})
	keys := []string{names.EpochKey, names.LeaderKey, names.UIDKey}
	op.Mutations = []ovsdb.Mutation{
		mutation("external_ids", ovsdb.MutateOperationDelete, setValue(keys, false)),
		mutation("external_ids", ovsdb.MutateOperationInsert, mapValue(e.record())),
	}
	return operation{op, nil, -1}
}

// insert records the epoch in the cluster router that plans insert, and returns its UUID.
func (e Epoch) insert(plans []nb.Plan) (router string, err error) {
	for _, p := range plans {
		for _, rc := range p.Rows {
			r, ok := rc.Model.(*nbdb.LogicalRouter)
			if !ok || rc.Verb != nb.Insert || r.ExternalIDs[names.KeyClusterRouter] != "yes" {
				continue
			}
			maps.Copy(r.ExternalIDs, e.record())
			for _, c := range rc.Columns {
				if c.Column == "external_ids" {
					maps.Copy(c.Put, e.record())
				}
			}
			return rc.UUID, nil
		}
	}
	return "", errors.New("recording the leader epoch: there is no cluster router, and no plan inserts one")
}
