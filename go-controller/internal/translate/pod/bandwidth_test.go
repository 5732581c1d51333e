package pod

import (
	"maps"
	"testing"
)

// A limit in kilobits is never more than the limit in bits, never 0, and never more than a datapath can count. The
// burst lets the longest packet pass.
func TestBandwidth(t *testing.T) {
	for bits, want := range map[uint64]map[string]int{
		1_000:                 {"rate": 1, "burst": 525},
		1_999:                 {"rate": 1, "burst": 525},
		656_000:               {"rate": 656, "burst": 525},
		1_000_000:             {"rate": 1_000, "burst": 800},
		10_000_000_000:        {"rate": 10_000_000, "burst": 8_000_000},
		1_000_000_000_000_000: {"rate": 2147483647, "burst": 1717986917},
	} {
		if got := bandwidth(bits); !maps.Equal(got, want) {
			t.Errorf("%d bit/s: %v, want %v", bits, got, want)
		}
	}
}
