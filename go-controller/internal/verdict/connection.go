package verdict

import (
	"fmt"
	"net/netip"
)

// Verdict is what the ACLs on the way from one logical port to another do with a connection.
type Verdict struct {
	Allowed bool
	// Steps are the answers of the stages, in their order. The one that drops the packet is the last.
	Steps []Step
}

// Connection asks the ACLs of all stages on the way of a connection's first packet: those of the switch of p.Inport
// and those of the switch of p.Outport. When these differ, routers lead from one to the other. An end beyond all
// switches, such as the Internet, has no port: Inport or Outport is "".
//
// The packet is as it arrives. When the client connects to a service, service is the address and port that the packet
// has until load balancing. Otherwise service is the zero value.
//
// A pod that reaches itself through a service is not asked about here. Its packet skips FromLportAfterLB and arrives
// from the load balancer's options:hairpin_snat_ip: ask each Stage.
func (e *Evaluator) Connection(p Packet, service netip.AddrPort) (Verdict, error) {
	out := Verdict{Allowed: true}
	err := e.ask(p, service, func(s Step) bool {
		out.Steps, out.Allowed = append(out.Steps, s), s.Allowed
		return s.Allowed
	})
	if err != nil {
		return Verdict{}, err
	}
	return out, nil
}

// Steps is the answers of all stages, also of those after one that drops the packet. It is asked as Connection is.
func (e *Evaluator) Steps(p Packet, service netip.AddrPort) ([]Step, error) {
	var out []Step
	err := e.ask(p, service, func(s Step) bool {
		out = append(out, s)
		return true
	})
	return out, err
}

// ask yields the answers of the stages, in their order.
func (e *Evaluator) ask(p Packet, service netip.AddrPort, yield func(Step) bool) error {
	before := p
	if service.IsValid() {
		before.Dst, before.DstPort = service.Addr(), service.Port()
	}
	for _, packet := range []Packet{before, p} {
		if err := packet.valid(); err != nil {
			return fmt.Errorf("evaluating a connection: %w", err)
		}
	}
	hops, err := e.hops(p.Inport, p.Outport)
	if err != nil {
		return err
	}
	for i, h := range hops {
		for _, stage := range stages() {
			step, err := h.at.step(stage, h.packet(i, stage, before, p))
			if err != nil {
				return err
			}
			if !yield(step) {
				return nil
			}
		}
	}
	return nil
}

// hop is the way through one switch.
type hop struct {
	at      *logicalSwitch
	in, out string // ports
}

// packet is a packet at a stage of the i-th hop. before is what it is until load balancing.
func (h hop) packet(i int, stage Stage, before, p Packet) Packet {
	if i == 0 && p.Inport != "" && stage == FromLport {
		p = before
	}
	p.Inport, p.Outport = h.in, h.out
	return p
}

func (e *Evaluator) hops(in, out string) ([]hop, error) {
	from, to := e.byPort[in], e.byPort[out]
	for port, of := range map[string]*logicalSwitch{in: from, out: to} {
		if port != "" && of == nil {
			return nil, fmt.Errorf("evaluating a connection: no logical switch has a port %q", port)
		}
	}
	if from == to && from != nil {
		return []hop{{from, in, out}}, nil
	}
	var hops []hop
	if from != nil {
		hops = append(hops, hop{from, in, from.router})
	}
	if to != nil {
		hops = append(hops, hop{to, to.router, out})
	}
	return hops, nil
}
