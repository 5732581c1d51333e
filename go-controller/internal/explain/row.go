package explain

import (
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Row is a row of the Northbound database.
type Row struct {
	Table string `json:"table"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	// The result of comparing the row with a database; empty without one.
	State       State    `json:"state,omitempty"`
	Differences []string `json:"differences,omitempty"`

	key nb.Key
}

// String prints the row in one line, for a person.
func (r Row) String() string {
	line := fmt.Sprintf("%s %s  %s", r.Table, r.Name, r.UUID)
	if r.State != "" {
		line += "  " + string(r.State)
	}
	return line
}

// State is how a row compares with a database.
type State string

// The states.
const (
	Equal     State = "as wanted"
	Missing   State = "missing"
	Different State = "different"
	Unwanted  State = "not wanted"
)

// Rows are the rows that an owner wants.
type Rows []Row

// rowsOf lists the rows that an owner wants, and what is reported about it.
func rowsOf(c *core.Core, o nb.Owner) (Rows, []cluster.Problem, error) {
	want, err := c.Rows(o)
	if err != nil {
		return nil, nil, fmt.Errorf("translating %s: %w", o, err)
	}
	rows := Rows{}
	for _, r := range want.Rows {
		ref := c.Schema.Ref(r.Model)
		rows = append(rows, Row{Table: ref.Table, Name: c.Schema.Label(r.Model), UUID: ref.UUID, key: r.Key})
	}
	return rows, want.Reports, nil
}

// compare notes how the rows of an owner are in a database.
func (rows *Rows) compare(c *core.Core, o nb.Owner, v nb.View) error {
	plan, err := c.Compare(v, o)
	if err != nil {
		return err
	}
	deleted := map[nb.Ref]bool{} // such as a second row with the same mark
	for _, rc := range plan.Rows {
		if rc.Verb == nb.Delete {
			deleted[rc.Ref()] = true
		}
	}
	for i := range *rows {
		r := &(*rows)[i]
		r.State = Equal
		for _, ref := range v.Owned(o) {
			if deleted[ref] {
				continue
			}
			if k, ok := c.Schema.Mark(v.Row(ref)); ok && k == r.key {
				r.UUID = ref.UUID // a stand-in for the derived one, perhaps
			}
		}
	}
	rows.differ(plan)
	return nil
}

// RowIn tells how a row is in a database, with the UUID that it has there. A row that is not there has the UUID that it
// would get.
func RowIn(c *core.Core, v nb.View, k nb.Key) (Row, error) {
	rows, _, err := rowsOf(c, k.Owner)
	if err == nil {
		err = rows.compare(c, k.Owner, v)
	}
	if err != nil {
		return Row{}, err
	}
	if r := rows.find(k, ""); r != nil {
		return *r, nil
	}
	return Row{Table: k.Table, State: Unwanted, key: k}, nil
}

// RowOf finds a row by its UUID, and the owner that it is for: in the database v, unless that is nil, and else among
// the rows that are wanted. It is an error if there is none, or if it is nobody's.
func RowOf(c *core.Core, v nb.View, uuid string) (Row, nb.Owner, error) {
	if v != nil {
		for _, table := range c.Schema.Tables() {
			m := v.Row(nb.Ref{Table: table, UUID: uuid})
			if m == nil {
				continue
			}
			k, ours := c.Schema.Mark(m)
			if !ours {
				return Row{}, nb.Owner{}, fmt.Errorf("row %s of table %s is of somebody else: it names no owner in external_ids, "+
					"and Northbound leaves it alone", uuid, table)
			}
			row, err := RowIn(c, v, k)
			if row.UUID != uuid { // another row has its mark, or none is wanted
				row = Row{Table: table, UUID: uuid, State: Unwanted, key: k}
			}
			row.Name = c.Schema.Label(m)
			return row, k.Owner, err
		}
	}
	for _, o := range c.Owners() {
		rows, _, err := rowsOf(c, o)
		if err != nil {
			return Row{}, nb.Owner{}, err
		}
		for _, r := range rows {
			if r.UUID == uuid {
				if v != nil {
					r.State = Missing
				}
				return r, o, nil
			}
		}
	}
	if v == nil {
		return Row{}, nb.Owner{}, fmt.Errorf("the manifests want no row %s", uuid)
	}
	return Row{}, nb.Owner{}, fmt.Errorf("no table that Northbound writes has a row %s, and none is wanted", uuid)
}

// differ notes what a plan would change.
func (rows *Rows) differ(plan nb.Plan) {
	for _, rc := range plan.Rows {
		r := rows.find(rc.Key, rc.UUID)
		switch {
		case rc.Verb == nb.Delete:
			*rows = append(*rows, Row{Table: rc.Key.Table, Name: rc.Label, UUID: rc.UUID, State: Unwanted, key: rc.Key})
		case r == nil: // every row that is wanted is there
		case rc.Verb == nb.Insert:
			r.State, r.UUID = Missing, rc.UUID
		default:
			r.State = Different
			lines := strings.Split(strings.TrimSpace(nb.Plan{Rows: []nb.RowChange{rc}}.String()), "\n")
			for _, l := range lines[1:] {
				r.Differences = append(r.Differences, strings.TrimSpace(l))
			}
		}
	}
	for _, m := range plan.Members {
		r := rows.find(m.Key, m.UUID)
		if r == nil || r.State == Missing || r.State == Unwanted {
			continue
		}
		r.State = Different
		if m.Remove {
			r.Differences = append(r.Differences, fmt.Sprintf("is listed in %s %s", m.Slot.In.Table, m.In))
		} else {
			r.Differences = append(r.Differences, fmt.Sprintf("is not listed in %s %s", m.Slot.In.Table, m.In))
		}
	}
}

// find is the row of a key. When several rows have its mark, which is one too
// many, it is the one of the UUID.
func (rows *Rows) find(k nb.Key, uuid string) *Row {
	var found *Row
	for i := range *rows {
		if r := &(*rows)[i]; r.key == k && (found == nil || r.UUID == uuid) {
			found = r
		}
	}
	return found
}

// lines prints the rows for a person.
func (rows Rows) lines() []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.String())
		for _, d := range r.Differences {
			out = append(out, "    "+d)
		}
	}
	if len(out) == 0 {
		return []string{"none"}
	}
	return out
}
