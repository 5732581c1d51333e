package nbdb_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// tables is the columns of a schema by table.
type tables map[string]struct{ Columns map[string]any }

func parse(t *testing.T, text []byte) tables {
	t.Helper()
	var s struct{ Tables tables }
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s.Tables
}

func read(t *testing.T, file string) tables {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// The models have every column of the oldest schema, and beyond them columns as newer servers have them, not otherwise.
func TestModelsSchema(t *testing.T) {
	oldest, models := parse(t, []byte(nbdb.SchemaFile())), read(t, "models.ovsschema")
	newest := read(t, testkit.NBSchemas()["26.09"])
	var differ []string
	for table, s := range models {
		for name, c := range s.Columns {
			if reflect.DeepEqual(c, oldest[table].Columns[name]) {
				continue
			}
			differ = append(differ, table+"."+name)
			if !reflect.DeepEqual(c, newest[table].Columns[name]) {
				t.Errorf("%s.%s is %v, newer servers have %v", table, name, c, newest[table].Columns[name])
			}
		}
	}
	slices.Sort(differ)
	if want := []string{"ACL.action", "ACL.tier"}; !slices.Equal(differ, want) {
		t.Errorf("columns %v differ from the oldest schema, want %v", differ, want)
	}
	for table, s := range oldest {
		for name := range s.Columns {
			if models[table].Columns[name] == nil {
				t.Errorf("the models lack column %s.%s", table, name)
			}
		}
	}
}
