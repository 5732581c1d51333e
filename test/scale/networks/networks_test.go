package networks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/netns"
	"github.com/northbound-net/northbound/test/scale/rig"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m.Run)) }

// TestManyNetworks has some networks, and later more, on real OVN. Each costs the same then: neither ovn-northd nor
// ovn-controller computes something for each pair of networks. Networks that come and go leave nothing.
func TestManyNetworks(t *testing.T) {
	root, err := rootfs.Ensure(t.Context(), rootfs.DefaultCache, rootfs.Tested, progress.New(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join("..", "..", "..")
	bin := filepath.Join(repository, "bin")
	programs := rig.Programs{APIServer: filepath.Join(bin, "sandbox-apiserver"), OVNKube: filepath.Join(bin, "ovnkube"),
		Schema: "/usr/share/ovn/ovn-nb.ovsschema"}
	r, err := Run(t.Context(), programs, Config{Kinds: filepath.Join(repository, load.NetworkKinds), Sizes: []int{4, 12},
		Rounds: 1, Churn: 2 * batch, Systems: []central.Release{{Root: root, Version: "tested"}}},
		func(what string) { t.Log(what) })
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations() {
		t.Error(v)
	}
	few, many := r.Results[0].Each, r.Results[1].Each
	t.Logf("a network of 4, and one of 12: %+v, %+v", few, many)
	if many.Rows > few.Rows || many.LogicalFlows > few.LogicalFlows || many.Datapaths > few.Datapaths {
		t.Errorf("a network of 12 has more than one of 4: %+v, %+v", many, few)
	}
}

func valid() Config {
	return Config{Sizes: []int{100, 300}, Rounds: 5, Churn: 1000, Systems: []central.Release{{Version: "25.03"}}}
}

func TestCheck(t *testing.T) {
	if err := valid().Check(); err != nil {
		t.Errorf("a valid configuration: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"--networks [300 100]: want ascending":        func(c *Config) { c.Sizes = []int{300, 100} },
		"--networks [2000]: want ascending":           func(c *Config) { c.Sizes = []int{2000} },
		"--networks-rounds: want at least one":        func(c *Config) { c.Rounds = 0 },
		"--networks, --ovn, --networks-rounds: want ": func(c *Config) { c.Systems = nil },
		"--networks-churn 50: want 0, or a multiple":  func(c *Config) { c.Churn = batch },
	} {
		c := valid()
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The table has a column for each release and a figure for each size. A restart that writes, and networks that leave
// something behind, are wrong; memory that differs is not.
func TestResults(t *testing.T) {
	change := []Change{{Granted: 3 * time.Millisecond}, {Granted: 9 * time.Millisecond}, {Granted: 5 * time.Millisecond}}
	r := &Results{Machine: "a machine"}
	for _, v := range []string{"25.03", "26.09"} {
		for _, n := range []int{100, 300} {
			x := Result{Version: v, Networks: n, Pods: change, Came: change}
			x.Each = counts{rows: 120 * n, flows: n}.sub(counts{rows: 20 * n}).each(n)
			r.Results = append(r.Results, x)
		}
	}
	left := Left{Rows: 7, Northd: 42}
	grown := left
	grown.Memory.Northd = 1
	r.Churned = []Churned{{Version: "25.03", Networks: 1000, Before: left, After: grown}}
	for _, want := range []string{"| measured | OVN 25.03 | OVN 26.09 |\n|---|---|---|\n",
		"| rows of a network in the Northbound database | 100 / 100 | 100 / 100 |\n", "100 / 300 networks",
		"| *a pod comes:* until it has addresses, ms | 5 / 5 | 5 / 5 |\n", "1000 networks came and went"} {
		if got := r.Table(); !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	if got := r.Violations(); len(got) != 0 {
		t.Errorf("wrong: %q", got)
	}
	r.Results[1].Restart.Patches = 1
	r.Churned[0].After.Rows++
	if got := r.Violations(); len(got) != 2 || !slices.ContainsFunc(got, func(s string) bool {
		return strings.Contains(s, "25.03, 300 networks: a restart of the master made 0 transactions and 1 patches")
	}) {
		t.Errorf("wrong: %q, want the restart and what networks left", got)
	}
}
