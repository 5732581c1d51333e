package hostplan

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Hairpin changes the source of packets that come back to the node through the
// management port and have the node's own address there as their source. The kernel
// would take them for forged. Their source becomes names.HairpinSource4 or
// HairpinSource6, and answers are translated back. Packets that the node forwards get
// its own address.
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
	for _, own := range []netip.Addr{h.V4, h.V6} {
		if own.IsValid() {
			s += ", " + own.String() + " as " + HairpinSource(own).String()
		}
	}
	return s
}

// HairpinSource is the address that replaces the node's own.
func HairpinSource(own netip.Addr) netip.Addr {
	if own.Is4() {
		return netip.MustParseAddr(names.HairpinSource4)
	}
	return netip.MustParseAddr(names.HairpinSource6)
}
