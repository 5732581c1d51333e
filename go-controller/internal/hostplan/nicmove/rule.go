package nicmove

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Rule is a policy routing rule that names an interface. Attrs has the attributes without a field here.
type Rule struct {
	IPv6     bool         `json:"ipv6,omitempty"`
	Priority uint32       `json:"priority"`
	From     netip.Prefix `json:"from,omitzero"`
	To       netip.Prefix `json:"to,omitzero"`
	TOS      uint8        `json:"tos,omitempty"`
	IIF      string       `json:"iif,omitempty"`
	OIF      string       `json:"oif,omitempty"`
	Action   uint8        `json:"action"`          // FR_ACT_*; 1 is a look-up
	Table    uint32       `json:"table,omitempty"` // of the look-up
	Flags    uint32       `json:"flags,omitempty"` // FIB_RULE_INVERT and the like
	Attrs    []Attr       `json:"attrs,omitempty"` // FRA_*
}

// String has the form of ip(8).
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString("rule ")
	if r.IPv6 {
		b.WriteString("inet6 ")
	}
	fmt.Fprintf(&b, "%d:", r.Priority)
	if r.Flags&flagInvert != 0 {
		b.WriteString(" not")
	}
	b.WriteString(option("from", r.From) + option("to", r.To))
	if r.TOS != 0 {
		fmt.Fprintf(&b, " tos %#x", r.TOS)
	}
	b.WriteString(option("iif", r.IIF) + option("oif", r.OIF))
	for _, a := range r.Attrs {
		if a != (Attr{fraProtocol, "00"}) { // unspecified
			b.WriteString(a.text(ruleNames()))
		}
	}
	if r.Flags&^flagInvert != 0 {
		fmt.Fprintf(&b, " flags %#x", r.Flags)
	}
	if r.Action == 1 {
		fmt.Fprintf(&b, " lookup %d", r.Table)
	} else {
		fmt.Fprintf(&b, " action %d", r.Action)
	}
	return b.String()
}

const flagInvert = 2 // FIB_RULE_INVERT, linux/fib_rules.h

// in reports whether list has the rule.
func (r Rule) in(list []Rule) bool {
	return slices.ContainsFunc(list, func(q Rule) bool { return q.String() == r.String() })
}

// on returns the rule for an interface of another name.
func (r Rule) on(from, to string) Rule {
	if r.IIF == from {
		r.IIF = to
	}
	if r.OIF == from {
		r.OIF = to
	}
	return r
}

const fraProtocol = 21 // FRA_PROTOCOL

// ruleNames are FRA_* of linux/fib_rules.h in the words of ip-rule(8).
func ruleNames() map[uint32]string {
	return map[uint32]string{
		4: "goto", 10: "fwmark", 11: "realms", 12: "tun_id", 13: "suppress_ifgroup", 14: "suppress_prefixlength",
		16: "fwmask", 19: "l3mdev", 20: "uidrange", fraProtocol: "protocol", 22: "ipproto", 23: "sport", 24: "dport",
		25: "dscp",
	}
}
