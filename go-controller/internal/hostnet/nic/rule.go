package nic

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// settableRuleFlags are FIB_RULE_PERMANENT and FIB_RULE_INVERT; the others are
// the kernel's account of the rule.
const settableRuleFlags = 0x1 | 0x2

// readRules reads the policy rules that name the link, with all their matches. The
// library's reader knows only some of these. The header of a rule's message, struct
// fib_rule_hdr (linux/fib_rules.h), is that of a route's, with the action in place of
// the type.
func readRules(link string) ([]nicmove.Rule, error) {
	var out []nicmove.Rule
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		messages, err := dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, &nl.RtMsg{RtMsg: unix.RtMsg{Family: family}})
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			r, err := decodeRule(m)
			if err != nil {
				return nil, err
			}
			if r.IIF == link || r.OIF == link {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

func decodeRule(m []byte) (r nicmove.Rule, err error) {
	attrs, err := nl.ParseRouteAttr(m[unix.SizeofRtMsg:])
	if err != nil {
		return r, err
	}
	h := nl.DeserializeRtMsg(m)
	r = nicmove.Rule{
		IPv6: h.Family == unix.AF_INET6, TOS: h.Tos, Table: uint32(h.Table), Action: h.Type,
		Flags: h.Flags & settableRuleFlags,
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case nl.FRA_DST:
			to, _ := netip.AddrFromSlice(a.Value)
			r.To = netip.PrefixFrom(to, int(h.Dst_len))
		case nl.FRA_SRC:
			from, _ := netip.AddrFromSlice(a.Value)
			r.From = netip.PrefixFrom(from, int(h.Src_len))
		case nl.FRA_IIFNAME:
			r.IIF = nl.BytesToString(a.Value)
		case nl.FRA_OIFNAME:
			r.OIF = nl.BytesToString(a.Value)
		case nl.FRA_PRIORITY:
			r.Priority = binary.NativeEndian.Uint32(a.Value)
		case nl.FRA_TABLE:
			r.Table = binary.NativeEndian.Uint32(a.Value)
		case fraSuppressPrefixLen:
			if binary.NativeEndian.Uint32(a.Value) == ^uint32(0) { // that is: don't
				continue
			}
			fallthrough
		default:
			r.Attrs = append(r.Attrs, rawAttr(a))
		}
	}
	slices.SortFunc(r.Attrs, byType)
	return r, nil
}

const fraSuppressPrefixLen = 14 // linux/fib_rules.h

func carryRule(r nicmove.Rule, remove bool) error {
	h := &nl.RtMsg{RtMsg: unix.RtMsg{
		Family: unix.AF_INET, Tos: r.TOS, Table: tableInHeader(r.Table), Type: r.Action, Flags: r.Flags,
	}}
	if r.IPv6 {
		h.Family = unix.AF_INET6
	}
	attrs, err := encodeAttrs(r.Attrs)
	if err != nil {
		return err
	}
	attrs = append(attrs, nl.NewRtAttr(nl.FRA_PRIORITY, nl.Uint32Attr(r.Priority)),
		nl.NewRtAttr(nl.FRA_TABLE, nl.Uint32Attr(r.Table)))
	if r.To.IsValid() {
		h.Dst_len = uint8(r.To.Bits())
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_DST, r.To.Addr().AsSlice()))
	}
	if r.From.IsValid() {
		h.Src_len = uint8(r.From.Bits())
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_SRC, r.From.Addr().AsSlice()))
	}
	attrs = textAttr(attrs, nl.FRA_IIFNAME, r.IIF)
	attrs = textAttr(attrs, nl.FRA_OIFNAME, r.OIF)
	if remove {
		return send(unix.RTM_DELRULE, 0, h, attrs)
	}
	return send(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, h, attrs)
}
