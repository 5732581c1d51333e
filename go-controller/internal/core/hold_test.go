package core

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// While a removal waits, ports stay in the groups of policies. They leave those of former tenants, unless the master
// has no tenants any more.
func TestHoldingLeavesFormerTenants(t *testing.T) {
	for group, want := range map[string]map[bool]int{
		names.SelectorGroup("x"): {true: 0, false: 0}, names.TenantGroup("x"): {true: 1, false: 0}} {
		p := nb.Plan{Members: []nb.Membership{{In: group, Remove: true, UUID: "u",
			Slot: nb.Slot{In: nb.Ref{Table: nbdb.PortGroupTable}, Column: "ports"}}}}
		for tenants, n := range want {
			if got := len(holding(p, tenants, nil).Members); got != n {
				t.Errorf("%s, tenants %v: %d ports leave, want %d", group, tenants, got, n)
			}
		}
	}
}
