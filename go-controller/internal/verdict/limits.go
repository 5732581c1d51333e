package verdict

import (
	"maps"
	"net/netip"
	"slices"
)

// ForAnyPort is an evaluator for connections that differ from this one by the destination port only. It knows only the
// ACLs that may match them, so that asking about many ports is quick.
func (e *Evaluator) ForAnyPort(p Packet, service netip.AddrPort) (*Evaluator, error) {
	before := p
	if service.IsValid() {
		before.Dst, before.DstPort = service.Addr(), service.Port()
	}
	hops, err := e.hops(p.Inport, p.Outport)
	if err != nil {
		return nil, err
	}
	out := &Evaluator{map[string]*logicalSwitch{}, map[string]*logicalSwitch{}}
	for i, h := range hops {
		narrow := *h.at
		narrow.rules = map[Stage][]local{}
		for _, stage := range stages() {
			at := h.packet(i, stage, before, p)
			if stage != ToLport {
				at.Outport = "" // as Stage documents
			}
			for _, r := range h.at.rules[stage] {
				if r.err != nil || r.void || r.match.root.may(&at, narrow.names) {
					narrow.rules[stage] = append(narrow.rules[stage], r)
				}
			}
		}
		out.byName[narrow.name] = &narrow
		for _, port := range []string{h.in, h.out} {
			if e.byPort[port] == h.at {
				out.byPort[port] = &narrow
			}
		}
	}
	return out, nil
}

// PortLimits lists the destination ports at which the answer about a connection may change: with all else as in p,
// ports from one of them up to the next have the same verdict, and so have those below the first. They are those that
// ACLs on the way of the connection compare with, sorted.
func (e *Evaluator) PortLimits(p Packet) ([]uint16, error) {
	hops, err := e.hops(p.Inport, p.Outport)
	if err != nil {
		return nil, err
	}
	field := map[Protocol]string{TCP: "tcp.dst", UDP: "udp.dst", SCTP: "sctp.dst"}[p.Protocol]
	limits := map[uint16]struct{}{}
	for _, h := range hops {
		for _, rules := range h.at.rules {
			for _, r := range rules {
				if r.err != nil {
					continue // the packet that meets it has the error
				}
				for _, c := range r.match.compares {
					if c.name == field {
						c.operand.limits(limits)
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(limits)), nil
}

// limits adds the ports at which a comparison with the operand may change.
func (o *operand) limits(to map[uint16]struct{}) {
	if len(o.sets) > 0 || slices.ContainsFunc(o.constants, func(k constant) bool { return k.masked }) { // any ports
		for port := range 1 << 16 {
			to[uint16(port)] = struct{}{}
		}
		return
	}
	for _, k := range o.constants {
		port := uint16(k.value.lo)
		to[port], to[port+1] = struct{}{}, struct{}{} // after the last port comes 0, below which there is none
	}
}
