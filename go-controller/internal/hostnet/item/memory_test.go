package item

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Memory is a Kernel without a kernel: a set of items that prints itself.
type Memory struct{ items map[string]hostplan.Item }

// NewMemory is a kernel in which items are there.
func NewMemory(items ...hostplan.Item) *Memory {
	m := &Memory{map[string]hostplan.Item{}}
	for _, i := range items {
		m.items[i.Key()] = i
	}
	return m
}

// Read implements Kernel.
func (m *Memory) Read(want []hostplan.Item) ([]hostplan.Item, error) {
	links, keys := map[string]bool{}, map[string]bool{}
	for _, w := range want {
		keys[w.Key()] = true
		if l, ok := w.(hostplan.Link); ok {
			links[l.Name] = true
		}
	}
	var out []hostplan.Item
	for _, k := range slices.Sorted(maps.Keys(m.items)) {
		i := m.items[k]
		ours := keys[k]
		switch i := i.(type) {
		case hostplan.Addr:
			ours = ours || links[i.Link]
		case hostplan.Neighbour:
			ours = ours || links[i.Link]
		case hostplan.Route:
			ours = ours || i.Protocol == hostplan.RouteProtocol
		}
		if ours {
			out = append(out, i)
		}
	}
	return out, nil
}

// Apply implements Kernel. As in the kernel, nothing can be put on a link that
// does not exist.
func (m *Memory) Apply(c Change) error {
	if c.Want == nil {
		delete(m.items, c.Have.Key())
		return nil
	}
	if dev := c.Want.Device(); dev != "" && m.items["link "+dev] == nil {
		return fmt.Errorf("no such device %q", dev)
	}
	m.items[c.Want.Key()] = c.Want
	return nil
}

// String is the whole state, one item a line, sorted.
func (m *Memory) String() string {
	var lines []string
	for _, i := range m.items {
		lines = append(lines, i.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
