package explain

import (
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
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

// State is how a row compares with a database.
type State string

// The states.
const (
	Equal     State = "as wanted"
	Missing   State = "missing"
	Different State = "different"
	Unwanted  State = "not wanted"
)

// Compare sets the states of the service's rows by comparing them with a database.
func (e *Service) Compare(s *cluster.State, schema *nb.Schema, v nb.View) error {
	owner := service.Owner(cluster.ParseName(e.Name))
	want, err := service.Translator{Schema: schema}.Rows(s, owner)
	if err != nil {
		return fmt.Errorf("translating %s: %w", owner, err)
	}
	// Other owners create groups: the plan of this service must not fail because one is missing.
	made := nb.Scope{}
	for _, r := range want {
		for _, slot := range r.ListIn {
			if v.Row(slot.In) == nil {
				made[slot.In] = slot.In.UUID
			}
		}
	}
	plan, err := schema.Plan(v, owner, want, made)
	if err != nil {
		return fmt.Errorf("comparing the rows of %s: %w", owner, err)
	}
	for i := range e.Rows {
		e.Rows[i].State = Equal
		for _, ref := range v.Owned(owner) {
			if k, ok := schema.Mark(v.Row(ref)); ok && k == e.Rows[i].key {
				e.Rows[i].UUID = ref.UUID // may differ from the derived UUID
			}
		}
	}
	e.differ(plan)
	return nil
}

// differ records what a plan would change.
func (e *Service) differ(plan nb.Plan) {
	for _, rc := range plan.Rows {
		r := e.row(rc.Key, rc.UUID)
		switch {
		case rc.Verb == nb.Delete:
			e.Rows = append(e.Rows, Row{Table: rc.Key.Table, Name: rc.Label, UUID: rc.UUID, State: Unwanted, key: rc.Key})
		case r == nil: // does not happen: e.Rows has every wanted row
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
		r := e.row(m.Key, m.UUID)
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

// row returns the row with a key. If several rows have the key, because the database has a superfluous one, it returns
// the row with the UUID.
func (e *Service) row(k nb.Key, uuid string) *Row {
	var found *Row
	for i := range e.Rows {
		if r := &e.Rows[i]; r.key == k && (found == nil || r.UUID == uuid) {
			found = r
		}
	}
	return found
}
