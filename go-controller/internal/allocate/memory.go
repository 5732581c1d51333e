package allocate

import (
	"net/netip"
	"slices"
)

// remembered is how many nodes that went are remembered. In a cluster whose
// nodes come and go under ever new names the rest would only pile up.
const remembered = 1000

// memory is what nodes held that went: a node gets it back if it returns while
// it is free. The longest gone are forgotten first.
type memory struct {
	held  map[string][]netip.Prefix
	order []string // of held, the longest gone first
}

func newMemory() *memory { return &memory{held: map[string][]netip.Prefix{}} }

func (m *memory) get(node string) []netip.Prefix { return m.held[node] }

func (m *memory) put(node string, subnets []netip.Prefix) {
	m.drop(node)
	m.held[node] = subnets
	m.order = append(m.order, node)
	if len(m.order) > remembered {
		m.drop(m.order[0])
	}
}

func (m *memory) drop(node string) {
	if _, there := m.held[node]; !there {
		return
	}
	delete(m.held, node)
	i := slices.Index(m.order, node)
	m.order = slices.Delete(m.order, i, i+1)
}
