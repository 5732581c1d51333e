package reach

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// ownPort is a source port that a client chooses itself, unlike those of connections that a node forwards
// (names.SNATPorts).
const ownPort = 40000

// connection is one way to connect.
type connection struct {
	from, to End
	client   string         // who asked, when from only forwards
	service  netip.AddrPort // what the client connects to; the zero value unless that is a Service
	via      string         // that Service, as text
	asked    []span         // ports of to
	// refused is why there is nobody to connect to, or no way.
	refused string
	relay   *relay // nil when the server's rows see the client, and the client's rows the server
}

// packet is the connection's first packet to the first port of a span.
func (c connection) packet(s span) verdict.Packet {
	out := verdict.Packet{Inport: c.from.port, Outport: c.to.port, Src: c.from.Addr, Dst: c.to.Addr, SrcPort: ownPort,
		DstPort: s.first, Protocol: number(s.protocol, c.to.Addr.Is4())}
	if c.client != "" {
		out.SrcPort = names.FirstSNATPort
	}
	switch out.Protocol {
	case verdict.ICMP:
		out.SrcPort, out.ICMPType = 0, 8
	case verdict.ICMPv6:
		out.SrcPort, out.ICMPType = 0, 128
	}
	return out
}

// itself is true when a pod connects to itself.
func (c connection) itself() bool { return c.from.pod != nil && c.from.pod == c.to.pod }

// connections lists the ways to connect that a question is about.
func (c *Cluster) connections(q Question) (out []connection, notes []string, err error) {
	from, notes, err := c.clients(q.From)
	if err != nil {
		return nil, nil, err
	}
	from = c.strangers(from, q)
	if q.To.Kind == Address && q.Port.Number != 0 {
		if svc := c.holder(q); svc != nil {
			q.To = Side{Kind: Service, Name: svc.Name}
		}
	}
	if q.To.Kind == Service {
		out, err = c.toService(from, q)
		return out, notes, err
	}
	to, more, err := c.servers(from, q.To)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range to {
		asked, err := portsOf(q.Port, e)
		if err != nil {
			return nil, nil, err
		}
		for _, client := range from {
			if client.Addr.Is4() == e.Addr.Is4() {
				out = append(out, connection{from: client, to: e, asked: asked, refused: c.apart(client, e)})
			}
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%s and %s have no addresses of the same family", q.From, q.To)
	}
	notes = append(notes, more...)
	if svc := c.nodePort(to[0], q.Port); svc != nil {
		notes = append(notes, fmt.Sprintf("%d is a node port of svc/%s: whether its pods admit clients that come through "+
			"it is not asked here. They see the management port's address of node/%s, with source ports %s", q.Port.Number,
			svc.Name, to[0].node, names.SNATPorts))
	}
	return out, notes, nil
}

// nodePort is the Service that a port of a node belongs to, nil for none.
func (c *Cluster) nodePort(at End, asked Asked) (found *cluster.Service) {
	if at.pod != nil || at.node == "" || asked.Number == 0 {
		return nil
	}
	protocol := cmp.Or(asked.Protocol, cluster.TCP)
	for _, svc := range c.State.Services {
		for _, p := range svc.Ports {
			if p.NodePort == asked.Number && p.Protocol == protocol {
				found = svc // of one protocol, a node port belongs to one Service
			}
		}
	}
	return found
}

// portsOf is the ports of an end that a question is about.
func portsOf(a Asked, e End) ([]span, error) {
	switch {
	case a.Name != "":
		return namedPort(a, e)
	case a.Number != 0:
		p := a.Protocol
		if p == "" {
			p = cluster.TCP
		}
		return []span{{p, a.Number, a.Number}}, nil
	case a.Protocol != "":
		return []span{everyPort(a.Protocol)}, nil
	}
	var out []span
	for _, p := range protocols() {
		out = append(out, everyPort(p))
	}
	return out, nil
}

// namedPort is the numbers of a port that a pod's containers have by name.
func namedPort(a Asked, e End) ([]span, error) {
	var out []span
	for _, p := range cluster.Protocols() {
		if e.pod == nil || a.Protocol != "" && a.Protocol != p {
			continue
		}
		if number, ok := e.pod.Ports.Number(cluster.PortName{Protocol: p, Name: a.Name}); ok {
			out = append(out, span{p, number, number})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no container port %s: want a number, or the name of one of its ports", e.Name, a)
	}
	return out, nil
}
