package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/monitoring/dashboard"
)

const dashboardFile = root + "/dist/grafana/northbound.json"

// panels reads the dashboard.
func panels(t *testing.T) []dashboard.Panel {
	t.Helper()
	d, err := dashboard.Read(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if v := d.Templating.List; d.UID != "northbound" || d.Schema == 0 || len(v) != 1 || v[0].Name != "datasource" ||
		v[0].Type != "datasource" || v[0].Query != "prometheus" || len(d.Panels) < 20 {
		t.Fatalf("%s: want 20 panels at least, and the variable datasource for Prometheus: %+v", dashboardFile, d)
	}
	return d.Panels
}

// The chart has the same dashboard: helm reads no file from outside a chart. go test -update copies it.
func TestChartHasTheSameDashboard(t *testing.T) {
	inChart(t, dashboardFile, "dashboard.json")
}

// Panels have numbers and places of their own, and use the Prometheus that the viewer chooses.
func TestPanels(t *testing.T) {
	all := panels(t)
	for i, p := range all {
		for _, o := range all[:i] {
			if p.ID == o.ID || p.Title == o.Title || p.Place.Overlaps(o.Place) {
				t.Errorf("panels %d %q and %d %q: want other numbers, titles and places", p.ID, p.Title, o.ID, o.Title)
			}
		}
		if p.Place.W < 1 || p.Place.H < 1 || p.Place.X < 0 || p.Place.X+p.Place.W > 24 {
			t.Errorf("panel %q is at %+v: want it within 24 columns", p.Title, p.Place)
		}
		if p.Type == "row" {
			continue
		}
		chosen := dashboard.Source{Type: "prometheus", UID: "${datasource}"}
		if len(p.Targets) == 0 || p.Datasource == nil || *p.Datasource != chosen {
			t.Errorf("panel %q: %d queries of %+v, want one at least of %+v", p.Title, len(p.Targets), p.Datasource, chosen)
		}
		ids := map[string]bool{}
		for _, q := range p.Targets {
			if q.Datasource == nil || *q.Datasource != chosen || q.Legend == "" || ids[q.ID] {
				t.Errorf("panel %q: query %+v: want its own refId, a legend, and the chosen data source", p.Title, *q)
			}
			ids[q.ID] = true
		}
	}
}

// Panels that the page of alerts names are there.
func TestPageNamesPanels(t *testing.T) {
	titles := map[string]bool{}
	for _, p := range panels(t) {
		titles[p.Title] = true
	}
	named := regexp.MustCompile(`panel \*([^*]+)\*`).FindAllStringSubmatch(read(t, alertsPage), -1)
	if len(named) == 0 {
		t.Errorf("%s names no panel", alertsPage)
	}
	for _, found := range named {
		if !titles[found[1]] {
			t.Errorf("%s: there is no panel %q", alertsPage, found[1])
		}
	}
}

// Prometheus takes every query. Metrics and labels are in the reference page. Each alert's metrics have a panel.
func TestPanelsNameMetrics(t *testing.T) {
	known, shown := reference(t), map[string]bool{}
	known["ALERTS"] = []string{"alertname", "alertstate"}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: panels\n  rules:\n")
	legend := regexp.MustCompile(`{{([a-z_]+)}}`)
	for _, p := range panels(t) {
		for i, q := range p.Targets {
			for _, u := range unknown(known, q.Expr) {
				t.Errorf("panel %q: %s is not in docs/reference/metrics.md", p.Title, u)
			}
			for _, found := range selector.FindAllStringSubmatch(q.Expr, -1) {
				shown[found[1]] = true
			}
			expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "5m")
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: query %q has a variable that is not defined", p.Title, q.Expr)
			}
			// A legend's label that a sum has removed would be empty.
			for _, l := range legend.FindAllStringSubmatch(q.Legend, -1) {
				if l[1] != "instance" && l[1] != "database" && !strings.Contains(q.Expr, l[1]) {
					t.Errorf("panel %q: the result of %q has no label %s", p.Title, q.Expr, l[1])
				}
			}
			fmt.Fprintf(&rules, "  - record: panel:%d:%d\n    expr: %q\n", p.ID, i, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
	for _, a := range alerts(t) {
		for _, found := range selector.FindAllStringSubmatch(a.Expr, -1) {
			if !shown[found[1]] {
				t.Errorf("%s: no panel shows %s", a.Alert, found[1])
			}
		}
	}
}
