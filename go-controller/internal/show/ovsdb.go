package show

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// ovsdb prints a standalone database file (ovsdb(5), "Standalone Format"): a record with the schema, and a record with
// a transaction that creates the content. To be reproducible, it has no date.
func (v *view) ovsdb() ([]byte, error) {
	txn := map[string]any{}
	for _, table := range v.schema.Tables() {
		content := map[string]map[string]any{}
		for _, m := range v.db.Rows(table) {
			row := map[string]any{}
			for _, c := range cells(m) {
				row[c.column] = wire(v.refs(table, c.column), c.value)
			}
			content[v.schema.Ref(m).UUID] = row
		}
		if len(content) > 0 {
			txn[table] = content
		}
	}
	var b bytes.Buffer
	if err := writeRecord(&b, json.RawMessage(nbdb.SchemaFile())); err != nil {
		return nil, err
	}
	if len(txn) > 0 {
		if err := writeRecord(&b, txn); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// writeRecord appends a record: a line with the length and the SHA-1 sum of the body, then the body, which is a line of
// JSON.
func writeRecord(b *bytes.Buffer, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body) // appends a newline
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	fmt.Fprintf(b, "OVSDB JSON %d %x\n", body.Len(), sha1.Sum(body.Bytes()))
	b.Write(body.Bytes())
	return nil
}

// wire returns a cell's value in the form of RFC 7047 section 5.1. refs is the table that the value refers to.
func wire(refs string, value any) any {
	atom := func(s string) any {
		if refs != "" {
			return []string{"uuid", s}
		}
		return s
	}
	switch x := value.(type) {
	case string:
		return atom(x)
	case []string:
		if len(x) == 1 {
			return atom(x[0])
		}
		atoms := make([]any, len(x))
		for i, s := range x {
			atoms[i] = atom(s)
		}
		return []any{"set", atoms}
	case map[string]string:
		return wireMap(x)
	case map[string]int:
		return wireMap(x)
	}
	return value
}

func wireMap[V any](m map[string]V) any {
	pairs := make([][2]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, [2]any{k, m[k]})
	}
	return []any{"map", pairs}
}
