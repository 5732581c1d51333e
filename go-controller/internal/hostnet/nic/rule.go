package nic

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// ruleHeaderSize is the size of struct fib_rule_hdr (linux/fib_rules.h).
const ruleHeaderSize = 12

// settableRuleFlags are FIB_RULE_PERMANENT and FIB_RULE_INVERT; the others are
// the kernel's account of the rule.
const settableRuleFlags = 0x1 | 0x2

// readRules reads the policy rules that name the link, with all their matches. The
// library's reader knows only some of these.
func readRules(link string) ([]nicmove.Rule, error) {
	var out []nicmove.Rule
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		header := make([]byte, ruleHeaderSize)
		header[0] = family
		messages, err := dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, header)
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
	attrs, err := nl.ParseRouteAttr(m[ruleHeaderSize:])
	if err != nil {
		return r, err
	}
	r = nicmove.Rule{
		IPv6: m[0] == unix.AF_INET6, TOS: m[3], Table: uint32(m[4]), Action: m[7],
		Flags: binary.NativeEndian.Uint32(m[8:]) & settableRuleFlags,
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case nl.FRA_DST:
			to, _ := netip.AddrFromSlice(a.Value)
			r.To = netip.PrefixFrom(to, int(m[1]))
		case nl.FRA_SRC:
			from, _ := netip.AddrFromSlice(a.Value)
			r.From = netip.PrefixFrom(from, int(m[2]))
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
			r.Attrs = append(r.Attrs, nicmove.Attr{Type: a.Attr.Type, Value: hex.EncodeToString(a.Value)})
		}
	}
	slices.SortFunc(r.Attrs, func(a, b nicmove.Attr) int { return int(a.Type) - int(b.Type) })
	return r, nil
}

const fraSuppressPrefixLen = 14 // linux/fib_rules.h

func carryRule(r nicmove.Rule, remove bool) error {
	h := make([]byte, ruleHeaderSize)
	h[0] = unix.AF_INET
	if r.IPv6 {
		h[0] = unix.AF_INET6
	}
	h[3], h[7] = r.TOS, r.Action
	if r.Table < 256 { // else FRA_TABLE alone tells
		h[4] = byte(r.Table)
	}
	binary.NativeEndian.PutUint32(h[8:], r.Flags)
	attrs, err := encodeAttrs(r.Attrs)
	if err != nil {
		return err
	}
	attrs = append(attrs, nl.NewRtAttr(nl.FRA_PRIORITY, nl.Uint32Attr(r.Priority)),
		nl.NewRtAttr(nl.FRA_TABLE, nl.Uint32Attr(r.Table)))
	if r.To.IsValid() {
		h[1] = byte(r.To.Bits())
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_DST, r.To.Addr().AsSlice()))
	}
	if r.From.IsValid() {
		h[2] = byte(r.From.Bits())
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_SRC, r.From.Addr().AsSlice()))
	}
	if r.IIF != "" {
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_IIFNAME, nl.ZeroTerminated(r.IIF)))
	}
	if r.OIF != "" {
		attrs = append(attrs, nl.NewRtAttr(nl.FRA_OIFNAME, nl.ZeroTerminated(r.OIF)))
	}
	if remove {
		return send(unix.RTM_DELRULE, 0, h, attrs...)
	}
	return send(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, h, attrs...)
}
