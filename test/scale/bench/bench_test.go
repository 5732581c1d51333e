package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/scale/central"
)

func TestPercentiles(t *testing.T) {
	var d []time.Duration
	for i := 100; i > 0; i-- {
		d = append(d, time.Duration(i)*time.Millisecond)
	}
	if got, want := percentiles(d), "50.0 ms, 95.0 ms, 99.0 ms"; got != want {
		t.Errorf("percentiles of 1 to 100 ms are %s, want %s", got, want)
	}
	if got, want := percentiles(d[:1]), "1.0 ms, 1.0 ms, 1.0 ms"; got != want {
		t.Errorf("percentiles of one sample are %s, want %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	good := Config{Pods: 2000, Nodes: 100, RestartPods: 10000, Services: 1000, Adds: 50, PolicyNamespaces: 200,
		Only: []string{"burst"}}
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for want, change := range map[string]func(*Config){
		"want at least 1 of each":                          func(c *Config) { c.Pods = 0 },
		"have room for 512":                                func(c *Config) { c.Nodes = 513 },
		"60000 pods need at least 119 nodes":               func(c *Config) { c.RestartPods = 60000 },
		"--services 2001: want 1 to 2000":                  func(c *Config) { c.Services = 2001 },
		"--adds 61: want 1 to 60":                          func(c *Config) { c.Adds = 61 },
		"--policy-namespaces 201: want 1 to 200":           func(c *Config) { c.PolicyNamespaces = 201 },
		`--only "bursts": want some of raw,backlog,burst,`: func(c *Config) { c.Only = []string{"bursts"} },
		"--sizes: want at least one":                       func(c *Config) { c.Only = []string{phaseScale} },
		"--scale-nodes 0":                                  func(c *Config) { c.Only = []string{phaseScale} },
		"reading the page": func(c *Config) {
			c.Only, c.Scale.Write = []string{phaseScale}, t.TempDir()
		},
		"--northd-nodes [250 100]: want ascending": func(c *Config) {
			c.Only, c.Northd = []string{phaseNorthd}, Northd{Nodes: []int{250, 100}, Rounds: 1, Systems: []central.Release{{}}}
		},
		"--northd-rounds: want at least one": func(c *Config) {
			c.Only, c.Northd = []string{phaseNorthd}, Northd{Nodes: []int{250}, Systems: []central.Release{{}}}
		},
		"--sizes [300 200]: want ascending": func(c *Config) {
			c.Only, c.Scale.Sizes = []string{phaseScale}, []int{300, 200}
		},
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", bad, err, want)
		}
	}
}

// The table replaces what is between its lines, and nothing else.
func TestWriteScaled(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, scalePage)
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Scaled{Scale: Scale{Nodes: 3, Services: 1, Write: dir}, Machine: "2 processors"}
	for i, n := range []int{1000, 10000} {
		s.Sizes = append(s.Sizes, scaled{pods: n, heap: int64(1+i) * 9e6, changes: []effect{{kind: "a pod comes",
			took: time.Millisecond, operations: 4}, {kind: "a label changes"}}})
	}
	write("before\n")
	if err := s.Write(); err == nil || !strings.Contains(err.Error(), "from here") {
		t.Errorf("writing into a page without the lines: %v, want an error that names them", err)
	}
	write("before\n" + tableBegin + "old\n" + tableEnd + "after\n")
	for range 2 { // the second time changes nothing
		if err := s.Write(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	want := "before\n" + tableBegin + "\n" + s.Table() + "\n" + tableEnd + "after\n"
	if err != nil || string(got) != want {
		t.Errorf("the page is %v\n%s\nwant\n%s", err, got, want)
	}
	for _, want := range []string{"| 1,000 pods | 10,000 pods |", "| 9 MB | 18 MB; 1000 bytes |",
		"| 4; 1.0 ms; 0.0 ms |", "| 0; none; 0.0 ms |"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in the page:\n%s", want, got)
		}
	}
	plot, err := os.ReadFile(filepath.Join(dir, scalePlot))
	if err != nil || !strings.Contains(string(plot), "a pod comes") || strings.Contains(string(plot), "a label changes") {
		t.Errorf("the plot (%v) is\n%s\nwant a line for each kind of change that writes", err, plot)
	}
}

// The table has a column for each release, and a figure for each size in each cell.
func TestNorthdTable(t *testing.T) {
	all := []northdSample{{SBCPU: 3 * time.Millisecond}, {SBCPU: 9 * time.Millisecond, Anew: true},
		{SBCPU: 4 * time.Millisecond, Anew: true}}
	changes := map[string]northdSample{"a pod comes": medianOf(all)}
	n := Northds{Machine: "a machine", Results: []northdResult{
		{Version: "25.03.0", Nodes: 100, LogicalFlows: 7, NorthdRSS: 5e6, Changes: changes},
		{Version: "26.09.0", Nodes: 100, LogicalFlows: 8}, {Version: "25.03.0", Nodes: 250, LogicalFlows: 9},
		{Version: "26.09.0", Nodes: 250, LogicalFlows: 10},
	}}
	text := n.Table()
	for _, want := range []string{"100 / 250 nodes; 50 pods", "| measured | OVN 25.03.0 | OVN 26.09.0 |\n|---|---|---|\n",
		"| logical flows | 7 / 9 | 8 / 10 |\n", "| RSS of ovn-northd, MB | 5 / 0 | 0 / 0 |\n",
		"| CPU time of ovn-northd, ms | 0* / 0 | 0 / 0 |\n| CPU time of the Southbound server, ms | 4 / 0 | 0 / 0 |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}
