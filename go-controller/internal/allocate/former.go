package allocate

import (
	"net/netip"
	"slices"
)

// maxFormer bounds formerSubnets: where nodes come and go under ever new names, it would grow for ever.
const maxFormer = 1000

// formerSubnets records the subnets that deleted nodes held. A node that returns gets them back while they are free.
// The nodes that were deleted first are forgotten first.
type formerSubnets struct {
	held  map[string][]netip.Prefix
	order []string // the keys of held, the node that was deleted first comes first
}

func newFormerSubnets() *formerSubnets { return &formerSubnets{held: map[string][]netip.Prefix{}} }

func (f *formerSubnets) put(node string, subnets []netip.Prefix) {
	f.drop(node)
	f.held[node] = subnets
	f.order = append(f.order, node)
	if len(f.order) > maxFormer {
		f.drop(f.order[0])
	}
}

func (f *formerSubnets) drop(node string) {
	if i := slices.Index(f.order, node); i >= 0 {
		f.order = slices.Delete(f.order, i, i+1)
	}
	delete(f.held, node)
}
