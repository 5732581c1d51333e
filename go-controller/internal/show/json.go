package show

import (
	"bytes"
	"encoding/json"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// json prints an object with an array for each table: its rows, sorted by name. A row has its UUID and all non-empty
// columns: strings, numbers and booleans as such, sets as sorted arrays, maps as objects.
func (v *view) json() ([]byte, error) {
	out := map[string][]map[string]any{}
	for _, table := range v.schema.Tables() {
		list := []map[string]any{}
		rows := v.db.Rows(table)
		if table == nbdb.PortGroupTable && len(rows) == 0 {
			continue // no feature that is always in use makes port groups
		}
		for _, m := range rows {
			row := map[string]any{"_uuid": v.schema.Ref(m).UUID}
			for _, c := range cells(m) {
				row[c.column] = c.value
			}
			list = append(list, row)
		}
		out[table] = list
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
