package encap

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// TestSystemID takes the configured chassis name, else the one that Open vSwitch has, else one made of the Node's name.
func TestSystemID(t *testing.T) {
	for _, k := range []struct{ configured, have, want string }{
		{"n1", "4f3c", "n1"}, {"n1", "", "n1"}, {"", "4f3c", "4f3c"}, {"", "", names.SystemID("n1")},
	} {
		got := SystemID(hostplan.Facts{SystemID: k.have}, config.Node{Name: "n1", SystemID: k.configured})
		if got != k.want {
			t.Errorf("SystemID configured %q, in Open vSwitch %q: %q, want %q", k.configured, k.have, got, k.want)
		}
	}
}
