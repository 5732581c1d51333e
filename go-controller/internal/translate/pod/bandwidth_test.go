package pod

import (
	"maps"
	"testing"
)

// What a limit in bits per second is in kilobits: never more than asked for, never 0, never more than a datapath can
// count; and a burst that lets the longest packet pass.
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
