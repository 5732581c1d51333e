package hostplan

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Hairpin gives packets that come out of the management port with the node's own
// address there as their source the source names.HairpinSource4 or
// HairpinSource6, whichever of the node's programs or of its clients they are
// from, and answers the same the other way round. Without it the kernel would
// take them for forged. Where such packets are forwarded they get the node's own
// address.
type Hairpin struct {
	Link   string     // the management port's interface, which need not exist
	V4, V6 netip.Addr // the node's addresses there; the zero Addr for none
}

// Key implements Item.
func (h Hairpin) Key() string { return "hairpin" }

// Device implements Item.
func (h Hairpin) Device() string { return "" }

// String implements Item.
func (h Hairpin) String() string {
	s := "hairpin through " + h.Link
	for _, e := range []struct {
		own  netip.Addr
		seen string
	}{{h.V4, names.HairpinSource4}, {h.V6, names.HairpinSource6}} {
		if e.own.IsValid() {
			s += ", " + e.own.String() + " as " + e.seen
		}
	}
	return s
}
