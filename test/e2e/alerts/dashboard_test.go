package alerts

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/monitoring/dashboard"
)

var update = flag.Bool("update", false, "draw the dashboard's pictures in docs/operate anew")

const (
	dashboardFile = "../../../dist/grafana/northbound.json"
	pictures      = "../../../docs/operate"
	points        = 300 // of each line
)

// empty has the reasons why queries of the dashboard find nothing in this test.
func empty() map[string]string {
	return map[string]string{}
}

// mark remembers when a fault begins.
func (p *prometheus) mark(name string) {
	p.marks = append(p.marks, dashboard.Mark{At: time.Now(), Name: name})
}

// dashboard asks Prometheus what the dashboard shows of the time since it was started, and draws it. Every query of it
// finds something, or is listed with the reason why not.
func (p *prometheus) dashboard(t *testing.T) {
	d, err := dashboard.Read(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	picture := dashboard.Picture{Marks: p.marks, Range: dashboard.Range{Begin: p.begun, End: time.Now(), Rate: "15s"}}
	picture.Step = max(time.Second, picture.End.Sub(p.begun)/points).Truncate(time.Second)
	for _, m := range p.marks {
		t.Logf("%s: %s", m.At.Sub(p.begun).Round(time.Second), m.Name)
	}
	reasons, data := empty(), map[string][]dashboard.Series{}
	for _, panel := range d.Panels {
		for _, q := range panel.Targets {
			series, err := picture.Query(t.Context(), p.ask, *q)
			if err != nil {
				t.Fatal(err)
			}
			reason, listed := reasons[q.Expr]
			if found := len(series) > 0; found == listed {
				t.Errorf("panel %q: the query %s finds %d series, listed as empty: %q", panel.Title, q.Expr, len(series), reason)
			}
			delete(reasons, q.Expr)
			data[panel.Title] = append(data[panel.Title], series...)
		}
	}
	if len(reasons) > 0 {
		t.Errorf("listed as empty, but not in the dashboard: %v", reasons)
	}
	for _, row := range d.Rows() {
		var out bytes.Buffer
		if err := picture.Draw(&out, row, data); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(out.Bytes())); err != nil {
			t.Errorf("the picture of row %q: %v", row.Title, err)
		}
		name := filepath.Join(pictures, "dashboard-"+row.Slug()+".png")
		if *update {
			if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if _, err := os.Stat(name); err != nil {
			t.Errorf("row %q has no picture; go test -update draws it: %v", row.Title, err)
		}
	}
}
