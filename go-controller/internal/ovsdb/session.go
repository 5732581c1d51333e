package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/jsonrpc"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
)

// transactTimeout bounds one transaction.
const transactTimeout = 30 * time.Second

// Session is one connection to the database, in sync from the moment it is handed out until it is lost.
type Session struct {
	address string
	schema  *nb.Schema
	conn    *jsonrpc.Conn
	rows    *replica.Replica
	server  *replica.Replica    // of the database that tells which server is the leader
	lacking map[string][]string // columns that the server does not have, by table
	index   *index
	ended   context.Context // done once the session has ended
	end     context.CancelFunc
	freed   freedRecord
}

// newSession is a session that is not connected yet.
func newSession(schema *nb.Schema, address string, wake func()) *Session {
	s := &Session{address: address, schema: schema, rows: replica.New(), server: replica.New(),
		lacking: map[string][]string{}, index: newIndex(schema, wake)}
	s.server.Add("Database", &databaseRow{}, "name", "model", "leader")
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// close ends the session and its connection.
func (s *Session) close() {
	s.end()
	s.conn.Close()
}

// View is what is there now. It serves for one batch.
func (s *Session) View() nb.View {
	return &view{Session: s, rows: map[nb.Ref]model.Model{}, lists: map[nb.Slot]*listed{}}
}

// Owners lists every owner that a row's mark names.
func (s *Session) Owners() []nb.Owner { return s.index.owners() }

// TakeDirty returns the owners whose rows changed since the last call.
func (s *Session) TakeDirty() []nb.Owner { return s.index.takeDirty() }

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
	for uuid, m := range s.rows.Rows(nbdb.LogicalRouterTable) {
		if r, ok := m.(*nbdb.LogicalRouter); ok && r.ExternalIDs[names.KeyClusterRouter] == "yes" {
			found = append(found, uuid)
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
	if r, ok := s.rows.Row(nbdb.LogicalRouterTable, uuid).(*nbdb.LogicalRouter); ok && err == nil {
		return r.ExternalIDs[names.SubnetsKey], r.ExternalIDs[names.JoinKey]
	}
	return "", ""
}

// ByHand is the records of the nodes that were set up by hand, by name (cluster.ParseByHand).
func (s *Session) ByHand() map[string]string {
	out := map[string]string{}
	for uuid, m := range s.rows.Rows(nbdb.LogicalSwitchTable) {
		k, _ := s.schema.Mark(m)
		if record, ok := byHandRecord(m); ok && names.IsUUIDOf(byHandSwitch(k.Owner.Name), uuid) {
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
	Ops  int        // operations sent
	Lost []nb.Owner // owners whose rows vanished before the operation: plan them again
}

// errRejected says that the server refused a transaction. Then no part of it was carried out.
const errRejected = sessionError("transaction rejected")

// IsRejected tells whether the server refused a transaction because of its content. Otherwise the server was not
// reached.
func IsRejected(err error) bool { return errors.Is(err, errRejected) }

// Transact carries plans out as one transaction. When it returns without error, views show the result. After an error
// that is not IsRejected the server may or may not have carried it out. Planning anew is safe either way.
func (s *Session) Transact(ctx context.Context, plans []nb.Plan) (Outcome, error) {
	freed := s.freed.take()
	ops := append(operations(s.schema, plans), s.freedOperations(freed)...)
	params := make([]any, 0, len(ops)+1)
	params = append(params, DatabaseName)
	for _, o := range ops {
		params = append(params, o.wireOperation)
	}
	if err := s.ended.Err(); err != nil {
		return Outcome{}, fmt.Errorf("sending %d operations in a session that ended: %w", len(ops), err)
	}
	s.index.expect(plans)
	results, err := s.transact(ctx, params)
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
	out := Outcome{Ops: len(ops)}
	for i, o := range ops {
		if o.count >= 0 && results[i].Count != o.count {
			out.Lost = append(out.Lost, o.owners...)
		}
	}
	return out, nil
}

// opResult is how an operation ended (RFC 7047 section 5.2).
type opResult struct {
	Count          int
	Error, Details string
	Rows           []struct {
		UUID wireUUID `json:"_uuid"`
	}
}

// transact sends a transaction (RFC 7047 section 4.1.3).
func (s *Session) transact(ctx context.Context, params []any) (results []opResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	err = s.conn.Call(ctx, "transact", params, func(result *jsonrpc.Reader) error {
		return json.Unmarshal(result.Raw(), &results)
	})
	return results, err
}

// rejection is the server's reason to refuse a transaction. One that fails at commit has one more result than
// operations (RFC 7047 section 4.1.3).
func rejection(results []opResult, ops []operation) error {
	for i, r := range results {
		if r.Error == "" {
			continue
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

// echo checks that the server answers.
func (s *Session) echo(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.conn.Call(ctx, "echo", []any{}, func(*jsonrpc.Reader) error { return nil })
}

// CompareWithServer reads the UUIDs of all rows from the server and compares them with the replica. The error names the
// first table that differs. A change in flight may cause a difference: only one that stays is a fault.
func (s *Session) CompareWithServer(ctx context.Context) error {
	tables := s.schema.Tables()
	params := []any{DatabaseName}
	for _, t := range tables {
		params = append(params, wireOperation{Op: "select", Table: t, Columns: []string{uuidColumn}, Where: []wireClause{}})
	}
	results, err := s.transact(ctx, params)
	if err != nil {
		return fmt.Errorf("comparing the replica with the server: %w", err)
	}
	if len(results) < len(tables) {
		return fmt.Errorf("comparing the replica with the server: %d results for %d tables", len(results), len(tables))
	}
	for i, t := range tables {
		have := s.rows.Rows(t)
		if len(have) != len(results[i].Rows) {
			return fmt.Errorf("comparing the replica with the server: table %s has %d rows there, %d here",
				t, len(results[i].Rows), len(have))
		}
		for _, row := range results[i].Rows {
			if have[row.UUID[1]] == nil {
				return fmt.Errorf("comparing the replica with the server: row %v of table %s is not here", row.UUID[1], t)
			}
		}
	}
	return nil
}
