package nb

import (
	"encoding/json"
	"io"
)

// Changes is what several plans do, for programs. A person reads the text of the plans.
type Changes struct {
	Rows    []Change `json:"rows"`
	Added   int      `json:"added"`
	Changed int      `json:"changed"`
	Removed int      `json:"removed"`
}

// Change is what happens to one row.
type Change struct {
	Action  string   `json:"action"` // add, change or remove
	Table   string   `json:"table"`
	UUID    string   `json:"uuid"`
	Name    string   `json:"name,omitempty"` // "": the row has no name
	Owner   string   `json:"owner"`          // such as "Pod shop/web"
	Role    string   `json:"role,omitempty"` // which of its owner's rows this is
	Columns []Column `json:"columns,omitempty"`
	// The columns of other rows that list this one from now on, or no longer.
	Joins  []Listing `json:"joins,omitempty"`
	Leaves []Listing `json:"leaves,omitempty"`
}

// Listing is a column of a row that lists other rows.
type Listing struct {
	Table  string `json:"table"`
	UUID   string `json:"uuid"`
	Name   string `json:"name,omitempty"`
	Column string `json:"column"`
}

// Column is what happens to one column of a row. A scalar column has Old and New, a set Add and Remove, and a map Put
// and Drop.
type Column struct {
	Column string            `json:"column"`
	Old    any               `json:"old,omitempty"`
	New    any               `json:"new,omitempty"`
	Add    []string          `json:"add,omitempty"`
	Remove []string          `json:"remove,omitempty"`
	Put    map[string]string `json:"put,omitempty"`
	Drop   map[string]string `json:"drop,omitempty"` // with the former values, also of keys in Put
}

// NewChanges lists what plans do. A row that is only listed by another one from now on, or no longer, is changed.
func NewChanges(plans []Plan) *Changes {
	out := &Changes{Rows: []Change{}}
	for _, p := range plans {
		known := map[Ref]int{}
		for _, r := range p.Rows {
			known[r.Ref()] = len(out.Rows)
			out.Rows = append(out.Rows, rowChange(r))
		}
		for _, m := range p.Members {
			at, ok := known[m.Ref()]
			if !ok {
				at = len(out.Rows)
				known[m.Ref()] = at
				out.Rows = append(out.Rows, rowChange(RowChange{Verb: Update, Key: m.Key, UUID: m.UUID, Label: m.Label}))
			}
			out.Rows[at].list(m)
		}
	}
	count := map[string]*int{Insert.word(): &out.Added, Update.word(): &out.Changed, Delete.word(): &out.Removed}
	for _, r := range out.Rows {
		*count[r.Action]++
	}
	return out
}

// list notes a membership of the row.
func (c *Change) list(m Membership) {
	in := Listing{Table: m.Slot.In.Table, UUID: m.Slot.In.UUID, Name: m.In, Column: m.Slot.Column}
	if m.Remove {
		c.Leaves = append(c.Leaves, in)
	} else {
		c.Joins = append(c.Joins, in)
	}
}

// word is the verb for programs.
func (v Verb) word() string { return [...]string{"add", "change", "remove"}[v] }

func rowChange(r RowChange) Change {
	out := Change{Action: r.Verb.word(), Table: r.Key.Table, UUID: r.UUID, Name: r.Label, Owner: r.Key.Owner.String(),
		Role: r.Key.Role}
	for _, c := range r.Columns {
		out.Columns = append(out.Columns, Column{Column: c.Column, Old: c.Old, New: c.New, Add: c.Add, Remove: c.Remove,
			Put: c.Put, Drop: c.former()})
	}
	return out
}

// former is the dropped keys of a map column with what they had.
func (d ColumnChange) former() map[string]string {
	var out map[string]string
	for _, k := range d.Drop {
		if out == nil {
			out = map[string]string{}
		}
		out[k] = d.Was[k]
	}
	return out
}

// WriteJSON prints the changes as one JSON object.
func (c *Changes) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(c)
}
