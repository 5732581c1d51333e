package ovs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// bridged is an Open vSwitch with these mappings and bridges.
type bridged struct {
	mappings string
	bridges  []string
}

func (b bridged) ExternalID(string) (string, error) { return b.mappings, nil }

func (b bridged) Interface(name string) (ovs.InterfaceState, bool) {
	return ovs.InterfaceState{}, slices.Contains(b.bridges, name)
}

// A mapping to a bridge that is missing leads nowhere.
func TestPhysicalNetworks(t *testing.T) {
	for mappings, want := range map[string]string{"": "", "lan:br1": "lan", "lan:br1,storage:br2,wan:br1": "lan,wan"} {
		got, err := ovs.PhysicalNetworks(bridged{mappings, []string{"br-int", "br1"}})
		if err != nil || strings.Join(got, ",") != want {
			t.Errorf("%q: %q, %v, want %s", mappings, got, err, want)
		}
	}
	if got, err := ovs.PhysicalNetworks(bridged{"lan", nil}); err == nil || got != nil ||
		!strings.Contains(err.Error(), "ovn-bridge-mappings") {
		t.Errorf("a mapping without a bridge: %q, %v", got, err)
	}
}
