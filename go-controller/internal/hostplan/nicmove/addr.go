package nicmove

import (
	"fmt"
	"net/netip"
	"strings"
)

// Forever is the lifetime of an address that does not expire (rtnetlink(7), struct ifa_cacheinfo).
const Forever = 0xffffffff

// Flags of an address (linux/if_addr.h).
const (
	FlagNoDAD          = 0x02
	FlagDADFailed      = 0x08
	FlagTentative      = 0x40
	flagHomeAddress    = 0x10
	flagManageTempAddr = 0x100
	flagNoPrefixRoute  = 0x200
	flagMCAutoJoin     = 0x400
)

// SettableFlags are the flags that a user can set. The kernel maintains the others.
const SettableFlags = FlagNoDAD | flagHomeAddress | flagManageTempAddr | flagNoPrefixRoute | flagMCAutoJoin

// Addr is an address of a link with all its attributes.
type Addr struct {
	Link      string       `json:"link"`
	Prefix    netip.Prefix `json:"prefix"`              // the address with the subnet's length
	Peer      netip.Addr   `json:"peer,omitzero"`       // the other end; the subnet is then that of the peer
	Broadcast netip.Addr   `json:"broadcast,omitzero"`  // IPv4
	Label     string       `json:"label,omitempty"`     // IPv4
	Scope     uint8        `json:"scope,omitempty"`     // as in /etc/iproute2/rt_scopes
	Flags     uint32       `json:"flags,omitempty"`     // linux/if_addr.h
	Valid     uint32       `json:"valid"`               // seconds, or Forever
	Preferred uint32       `json:"preferred,omitempty"` // seconds, or Forever; 0: the address is deprecated
	Metric    uint32       `json:"metric,omitempty"`    // of the route to its subnet
	Protocol  uint8        `json:"protocol,omitempty"`  // who added it (IFA_PROTO)
}

// String has the form of ip(8).
func (a Addr) String() string {
	s := fmt.Sprintf("addr %s", a.Prefix) + option("peer", a.Peer) + option("brd", a.Broadcast) + " dev " + a.Link
	if a.Label != a.Link {
		s += option("label", a.Label)
	}
	s += option("scope", scope(a.Scope))
	for _, f := range []struct {
		bit  uint32
		name string
	}{
		{FlagNoDAD, "nodad"}, {flagHomeAddress, "home"}, {flagManageTempAddr, "mngtmpaddr"},
		{flagNoPrefixRoute, "noprefixroute"}, {flagMCAutoJoin, "autojoin"}, {FlagTentative, "tentative"},
		{FlagDADFailed, "dadfailed"},
	} {
		if a.Flags&f.bit != 0 {
			s += " " + f.name
		}
	}
	s += option("metric", a.Metric) + option("proto", a.Protocol)
	if a.Valid != Forever || a.Preferred != Forever {
		s += fmt.Sprintf(" valid_lft %s preferred_lft %s", lifetime(a.Valid), lifetime(a.Preferred))
	}
	return s
}

// option is " NAME VALUE", as ip(8) prints an option; "" for the zero value.
func option[T comparable](name string, value T) string {
	var none T
	if value == none {
		return ""
	}
	return fmt.Sprintf(" %s %v", name, value)
}

func lifetime(seconds uint32) string {
	if seconds == Forever {
		return "forever"
	}
	return fmt.Sprintf("%ds", seconds)
}

// on returns the address for another link. A label begins with the link's name; a label that would become too long
// stays as it is.
func (a Addr) on(from, to string) Addr {
	a.Link = to
	if rest, ok := strings.CutPrefix(a.Label, from); ok && len(to+rest) <= maxName {
		a.Label = to + rest
	}
	return a
}

// maxName is the longest name of an interface or label (IFNAMSIZ - 1).
const maxName = 15

// same reports whether an existing address is as wanted. Since lifetimes run down and routers prolong them, only a
// lifetime that is more than a minute too short makes a difference.
func (a Addr) same(want Addr) bool {
	if tooShort(a.Valid, want.Valid) || tooShort(a.Preferred, want.Preferred) ||
		(a.Valid == Forever) != (want.Valid == Forever) {
		return false
	}
	a.Flags, want.Flags = a.Flags&SettableFlags, want.Flags&SettableFlags
	a.Valid, a.Preferred, want.Valid, want.Preferred = 0, 0, 0, 0
	return a == want
}

func tooShort(have, want uint32) bool { return have < want && want-have > 60 }

// connected reports whether r is the route that the kernel makes for the address.
func (a Addr) connected(r Route) bool {
	subnet := a.Prefix.Masked()
	if a.Peer.IsValid() {
		subnet = netip.PrefixFrom(a.Peer, a.Prefix.Bits()).Masked()
	}
	if a.Flags&flagNoPrefixRoute != 0 || r.Protocol != protoKernel || r.Type != typeUnicast || r.Table != tableMain ||
		r.Dest != subnet {
		return false
	}
	metric := a.Metric
	if metric == 0 && r.Dest.Addr().Is6() {
		metric = 256 // IP6_RT_PRIO_ADDRCONF
	}
	return r.Metric == metric && len(r.Hops) == 1 && r.Hops[0].Link == a.Link && !r.Hops[0].Via.IsValid() &&
		(!r.Src.IsValid() || r.Src == a.Prefix.Addr())
}
