package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Dashboard is a dashboard, as far as it is checked and drawn.
type Dashboard struct {
	UID        string `json:"uid"`
	Schema     int    `json:"schemaVersion"`
	Templating struct {
		List []struct{ Name, Type, Query string }
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// Panel is a panel, or the title of a row of them.
type Panel struct {
	ID         int       `json:"id"`
	Type       string    `json:"type"`
	Title      string    `json:"title"`
	Place      Place     `json:"gridPos"`
	Datasource *Source   `json:"datasource"`
	Targets    []*Target `json:"targets"`
	Fields     struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

// Source is the server that a panel asks.
type Source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Target is a query of a panel.
type Target struct {
	ID         string  `json:"refId"`
	Expr       string  `json:"expr"`
	Legend     string  `json:"legendFormat"`
	Datasource *Source `json:"datasource"`
}

// Place is a rectangle on a grid of 24 columns.
type Place struct{ X, Y, W, H int }

// Overlaps tells whether two rectangles have a part in common.
func (p Place) Overlaps(o Place) bool {
	return p.X < o.X+o.W && o.X < p.X+p.W && p.Y < o.Y+o.H && o.Y < p.Y+p.H
}

// Row is a row of panels, with its title.
type Row struct {
	Title  string
	Panels []Panel
}

// Types of panels.
const (
	rowType  = "row"
	statType = "stat"
)

// Read reads a dashboard from a file.
func Read(file string) (d Dashboard, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("parsing %s: %w", file, err)
	}
	return d, nil
}

// Rows lists the rows.
func (d Dashboard) Rows() (out []Row) {
	for _, p := range d.Panels {
		switch {
		case p.Type == rowType:
			out = append(out, Row{Title: p.Title})
		case len(out) == 0:
			out = append(out, Row{Panels: []Panel{p}})
		default:
			last := &out[len(out)-1]
			last.Panels = append(last.Panels, p)
		}
	}
	return out
}

// Slug is the title in lower case, with hyphens.
func (r Row) Slug() string {
	return strings.ReplaceAll(strings.ToLower(r.Title), " ", "-")
}
