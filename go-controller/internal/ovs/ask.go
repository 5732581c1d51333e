package ovs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Select names what to read of a table: the rows of which Where holds, or all
// of them when it is nil.
type Select struct {
	Table   string
	Columns []string
	Where   Condition
}

// Condition is what must hold of a row (RFC 7047 section 5.1, <condition>).
type Condition []any

// Is holds of rows whose column is a string.
func Is(column, value string) Condition { return Condition{column, "==", value} }

// IsRow holds of rows whose column is a reference to a row, or the row that has
// that _uuid.
func IsRow(column, uuid string) Condition {
	return Condition{column, "==", []any{"uuid", uuid}}
}

// HasPair holds of rows whose column, a map, has the pair.
func HasPair(column, key, value string) Condition {
	return Condition{column, "includes", []any{"map", []any{[]any{key, value}}}}
}

// HasRow holds of rows whose column, a set of references, has the one to a row.
func HasRow(column, uuid string) Condition {
	return Condition{column, "includes", []any{"uuid", uuid}}
}

// Row is a row as it is on the wire (RFC 7047 section 5.1: a UUID is
// ["uuid","..."], a set ["set",[...]] unless it has one member, a map
// ["map",[[key,value],...]]).
type Row map[string]any

// Set is the members of a column that are strings or UUIDs; one that is absent
// has none.
func (r Row) Set(column string) []string {
	var out []string
	for _, m := range contents(r[column], "set") {
		if s, ok := atom(m); ok {
			out = append(out, s)
		}
	}
	if s, ok := atom(r[column]); ok {
		out = append(out, s)
	}
	return out
}

// atom is a string or UUID.
func atom(v any) (string, bool) {
	if list, ok := v.([]any); ok && len(list) == 2 && list[0] == "uuid" {
		v = list[1]
	}
	s, ok := v.(string)
	return s, ok
}

// contents are the members of a set or map.
func contents(v any, kind string) []any {
	if list, ok := v.([]any); ok && len(list) == 2 && list[0] == kind {
		inside, _ := list[1].([]any)
		return inside
	}
	return nil
}

// Text is a column that holds one string or UUID, "" when it holds none.
func (r Row) Text(column string) string {
	if set := r.Set(column); len(set) > 0 {
		return set[0]
	}
	return ""
}

// Map is a column that maps strings to strings.
func (r Row) Map(column string) map[string]string {
	out := map[string]string{}
	for _, p := range contents(r[column], "map") {
		if kv, ok := p.([]any); ok && len(kv) == 2 {
			out[fmt.Sprint(kv[0])] = fmt.Sprint(kv[1])
		}
	}
	return out
}

// Int is a column that holds one integer, 0 when it holds none.
func (r Row) Int(column string) int {
	f, _ := r[column].(float64)
	return int(f)
}

// Bool is a column that holds one boolean, false when it holds none.
func (r Row) Bool(column string) bool {
	b, _ := r[column].(bool)
	return b
}

// Ask reads from an OVSDB server with one transaction (RFC 7047 section 4.1.3),
// over a connection of its own, and without any model: it works with every
// version of a database that has the columns. The rows are in the order of
// selects. keys is for ssl: remotes.
func Ask(ctx context.Context, remote string, keys *tls.Config, database string, selects ...Select) ([][]Row, error) {
	params := []any{database}
	for _, s := range selects {
		where := []Condition{}
		if s.Where != nil {
			where = append(where, s.Where)
		}
		params = append(params, map[string]any{"op": "select", "table": s.Table, "where": where, "columns": s.Columns})
	}
	var results []struct {
		Error, Details string
		Rows           []Row
	}
	if err := call(ctx, remote, keys, "transact", params, &results); err != nil {
		return nil, err
	}
	var out [][]Row
	for i, r := range results {
		if r.Error != "" {
			return nil, fmt.Errorf("asking %s for %s: %s: %s", remote, selects[min(i, len(selects)-1)].Table, r.Error, r.Details)
		}
		out = append(out, r.Rows)
	}
	if len(out) != len(selects) {
		return nil, fmt.Errorf("asking %s: %d answers to %d questions", remote, len(out), len(selects))
	}
	return out, nil
}

// Schema is what a database can hold.
type Schema struct {
	Version string
	Columns map[string][]string // by table, sorted
}

// AskSchema reads a database's schema (RFC 7047 section 4.1.2).
func AskSchema(ctx context.Context, remote string, keys *tls.Config, database string) (Schema, error) {
	var answer struct {
		Version string
		Tables  map[string]struct{ Columns map[string]any }
	}
	if err := call(ctx, remote, keys, "get_schema", []any{database}, &answer); err != nil {
		return Schema{}, err
	}
	s := Schema{Version: answer.Version, Columns: map[string][]string{}}
	for name, t := range answer.Tables {
		s.Columns[name] = slices.Sorted(maps.Keys(t.Columns))
	}
	return s, nil
}

// call sends one JSON-RPC request (RFC 7047 section 4) and decodes its result.
func call(ctx context.Context, remote string, keys *tls.Config, method string, params []any, result any) error {
	conn, err := dial(ctx, remote, keys)
	if err != nil {
		return fmt.Errorf("asking %s: %w", remote, err)
	}
	defer conn.Close()
	return roundTrip(ctx, conn, remote, method, params, result)
}

func roundTrip(ctx context.Context, conn net.Conn, remote, method string, params []any, result any) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return fmt.Errorf("asking %s: %w", remote, err)
		}
	}
	if err := json.NewEncoder(conn).Encode(map[string]any{"id": 0, "method": method, "params": params}); err != nil {
		return fmt.Errorf("asking %s: %w", remote, err)
	}
	var answer struct {
		Error  any
		Result json.RawMessage
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return fmt.Errorf("asking %s: %w", remote, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("asking %s: it answers %v", remote, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("asking %s: reading its answer: %w", remote, err)
	}
	return nil
}

func dial(ctx context.Context, remote string, keys *tls.Config) (net.Conn, error) {
	network, address, ok := strings.Cut(remote, ":")
	switch {
	case ok && (network == "tcp" || network == "unix"):
		return (&net.Dialer{}).DialContext(ctx, network, address)
	case ok && network == "ssl" && keys != nil:
		return (&tls.Dialer{Config: keys}).DialContext(ctx, "tcp", address)
	case ok && network == "ssl":
		return nil, errors.New("an ssl: address needs keys")
	}
	return nil, fmt.Errorf("%q is no address: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", remote)
}
