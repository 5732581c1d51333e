package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
)

// transactTimeout bounds one transaction.
const transactTimeout = 30 * time.Second

// Session is one connection to the database, in sync from the moment it is handed out until it is lost.
type Session struct {
	schema  *nb.Schema
	conn    *replica.Conn
	copy    *replica.Copy
	lacking map[string][]string // columns of ours that the server lacks, by table
	index   *index
	ended   context.Context // done once the session has ended
	end     context.CancelFunc
	held    atomic.Pointer[Epoch] // that every transaction waits on; nil for none
	freed   freedRecord

	sending  atomic.Int32              // transactions under way
	answered atomic.Pointer[time.Time] // when the last one was answered
}

func newSession(schema *nb.Schema, cl *connection) *Session {
	s := &Session{schema: schema, conn: cl.Conn, copy: cl.copy, lacking: cl.lacking, index: cl.index}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// lost is why the session's connection has ended; nil while it has not.
func (s *Session) lost() error {
	if err := s.conn.Err(); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return s.ended.Err()
}

// View is what is there now. It serves for one batch.
func (s *Session) View() nb.View {
	return &view{Session: s, rows: map[nb.Ref]model.Model{}, lists: map[nb.Slot]*listed{}}
}

// Glance is a view that remembers no row: two looks at one may differ. It is for whoever reads each owner's rows once.
func (s *Session) Glance() nb.View {
	return &view{Session: s, lists: map[nb.Slot]*listed{}}
}

// Rows lists the rows of a table, whoever made them, in no order. They must not be modified.
func (s *Session) Rows(table string) []model.Model { return s.copy.Rows(table) }

// Owners lists every owner that a row's mark names, in no order.
func (s *Session) Owners() []nb.Owner { return s.index.owners() }

// HasOwner tells whether a row's mark names an owner for which is returns true.
func (s *Session) HasOwner(is func(nb.Owner) bool) bool { return s.index.hasOwner(is) }

// TakeDirty returns the owners whose rows changed since the last call.
func (s *Session) TakeDirty() []nb.Owner { return s.index.takeDirty() }

// TakeCleared tells whether a row that nobody owns was deleted or changed since the last call: the server may have
// refused an owner's rows because of it.
func (s *Session) TakeCleared() bool { return s.index.takeCleared() }

// Claim records the owners of rows in tables that have no room for a mark, so that a change of such a row makes its
// owner dirty.
func (s *Session) Claim(rows []nb.Row) {
	for _, r := range rows {
		if !s.schema.Marked(r.Key.Table) {
			s.index.claim(s.schema.Find(s.View(), s.schema.Ref(r.Model)), r.Key.Owner)
		}
	}
}

// ClusterRouter is the UUID of the router tagged k8s-cluster-router=yes, "" when there is none. Two of them are an
// error: choosing one would split the cluster.
func (s *Session) ClusterRouter() (string, error) {
	var found []string
	for _, m := range s.copy.Rows(nbdb.LogicalRouterTable) {
		if r, ok := m.(*nbdb.LogicalRouter); ok && r.ExternalIDs[names.KeyClusterRouter] == "yes" {
			found = append(found, r.UUID)
		}
	}
	if len(found) > 1 {
		slices.Sort(found)
		return "", fmt.Errorf(
			"logical routers %s are all tagged external_ids:%s=yes: want one; remove the tag from the others",
			strings.Join(found, ", "), names.KeyClusterRouter)
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// ClusterRecord is the --cluster-subnets and the --join-subnet with which the cluster was made, as the cluster router
// records them. Each is "" when there is no record.
func (s *Session) ClusterRecord() (subnets, join string) {
	uuid, err := s.ClusterRouter()
	if r, ok := s.copy.Row(nbdb.LogicalRouterTable, uuid).(*nbdb.LogicalRouter); ok && err == nil && r != nil {
		return r.ExternalIDs[names.SubnetsKey], r.ExternalIDs[names.JoinKey]
	}
	return "", ""
}

// ByHand is the records of the nodes that were set up by hand, by name (cluster.ParseByHand).
func (s *Session) ByHand() map[string]string {
	out := map[string]string{}
	for _, m := range s.copy.Rows(nbdb.LogicalSwitchTable) {
		k, _ := s.schema.Mark(m)
		if record, ok := byHandRecord(m); ok && names.IsUUIDOf(byHandSwitch(k.Owner.Name), s.schema.Ref(m).UUID) {
			out[k.Owner.Name] = record
		}
	}
	return out
}

// ByHandRecord is the record of one node; ok is false when it was not set up by hand.
func (s *Session) ByHandRecord(node string) (record string, ok bool) {
	return byHandRecord(s.ByHandSwitch(node))
}

// ByHandSwitch is the switch of a node that has no Kubernetes UID, nil when there is none.
func (s *Session) ByHandSwitch(node string) model.Model {
	v := s.View()
	return v.Row(s.schema.Find(v, nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: byHandSwitch(node)}))
}

// byHandSwitch is the derived UUID of the switch of a node that has no Kubernetes UID.
func byHandSwitch(node string) string {
	return names.NodeRow(nbdb.LogicalSwitchTable, node, names.RoleSwitch, "")
}

func byHandRecord(m model.Model) (record string, ok bool) {
	if ls, is := m.(*nbdb.LogicalSwitch); is && ls != nil {
		record, ok = ls.ExternalIDs[names.ByHandKey]
	}
	return record, ok
}

// Outcome is what a transaction did.
type Outcome struct {
	Ops  int        // operations that write: the wait on the leader epoch is not counted
	Lost []nb.Owner // owners whose rows vanished before the operation: plan them again
}

// errRejected says that the server refused a transaction. Then no part of it was carried out.
const errRejected = sessionError("transaction rejected")

// IsRejected tells whether the server refused a transaction because of its content. Otherwise the server was not
// reached.
func IsRejected(err error) bool { return errors.Is(err, errRejected) }

// Transact carries plans out as one transaction. When it returns without error, views show the result. After ErrFenced
// nothing was carried out. After another error that is not IsRejected the server may or may not have carried it out.
// Planning anew is safe either way. Between Raise and the next one, one goroutine at a time may call it.
func (s *Session) Transact(ctx context.Context, plans []nb.Plan) (Outcome, error) {
	return s.transact(ctx, s.unchanged(), plans)
}

// transact carries out operations, and then plans, as one transaction.
func (s *Session) transact(ctx context.Context, first []operation, plans []nb.Plan) (Outcome, error) {
	freed := s.freed.take()
	ops := append(first, operations(s.schema, plans)...)
	ops = append(ops, s.freedOperations(freed)...)
	if err := s.ended.Err(); err != nil {
		return Outcome{}, fmt.Errorf("sending %d operations in a session that ended: %w", len(ops), err)
	}
	s.index.expect(plans)
	results, err := s.send(ctx, ops)
	if err != nil {
		s.index.expect(nil)
		s.freed.add(freed, false)
		return Outcome{}, fmt.Errorf("sending %d operations: %w", len(ops), err)
	}
	if err := rejection(results, ops); err != nil {
		s.index.expect(nil)
		s.freed.add(freed, false)
		return Outcome{}, err
	}
	s.index.committed(plans)
	var out Outcome
	for i, o := range ops {
		if o.Op != ovsdb.OperationWait {
			out.Ops++
		}
		if o.count >= 0 && results[i].Count != o.count {
			out.Lost = append(out.Lost, o.owners...)
		}
	}
	return out, nil
}

// send sends a transaction, and waits for its answer for a limited time. It notes for alive that the server has a
// transaction to work on.
func (s *Session) send(ctx context.Context, ops []operation) ([]ovsdb.OperationResult, error) {
	raw := make([]ovsdb.Operation, len(ops))
	for i, o := range ops {
		raw[i] = o.Operation
	}
	ctx, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	s.sending.Add(1)
	defer s.sending.Add(-1)
	results, err := s.conn.Transact(ctx, raw...)
	if err == nil {
		now := time.Now()
		s.answered.Store(&now)
	}
	return results, err
}

// rejection is the server's reason to refuse a transaction. One that fails at commit has one more result than
// operations (RFC 7047 section 4.1.3).
func rejection(results []ovsdb.OperationResult, ops []operation) error {
	for i, r := range results {
		if r.Error == "" {
			continue
		}
		if i < len(ops) && ops[i].Op == ovsdb.OperationWait && r.Error == waitFailed {
			return ErrFenced
		}
		where := "at commit"
		if i < len(ops) {
			where = fmt.Sprintf("%s on %s", ops[i].Op, ops[i].Table)
			if len(ops[i].owners) > 0 {
				where += " for " + ops[i].owners[0].String()
			}
		}
		return fmt.Errorf("%w: %s: %s: %s", errRejected, where, r.Error, r.Details)
	}
	if len(results) < len(ops) {
		return fmt.Errorf("%w: %d results for %d operations", errRejected, len(results), len(ops))
	}
	return nil
}

// CompareWithServer reads the UUIDs of all rows from the server and compares them with the copy. The error names the
// first table that differs. A change in flight may cause a difference: only one that stays is a fault.
func (s *Session) CompareWithServer(ctx context.Context) error {
	tables := s.schema.Tables()
	ops := make([]operation, len(tables))
	for i, t := range tables {
		ops[i].Operation = ovsdb.Operation{Op: ovsdb.OperationSelect, Table: t, Columns: []string{"_uuid"},
			Where: []ovsdb.Condition{}}
	}
	results, err := s.send(ctx, ops)
	if err != nil {
		return fmt.Errorf("comparing the copy with the server: %w", err)
	}
	if len(results) < len(ops) {
		return fmt.Errorf("comparing the copy with the server: %d results for %d tables", len(results), len(ops))
	}
	for i, t := range tables {
		if have := s.copy.Len(t); have != len(results[i].Rows) {
			return fmt.Errorf("comparing the copy with the server: table %s has %d rows there, %d here",
				t, len(results[i].Rows), have)
		}
		for _, row := range results[i].Rows {
			if u, ok := row["_uuid"].(ovsdb.UUID); !ok || s.copy.Row(t, u.GoUUID) == nil {
				return fmt.Errorf("comparing the copy with the server: row %v of table %s is not here", row["_uuid"], t)
			}
		}
	}
	return nil
}
