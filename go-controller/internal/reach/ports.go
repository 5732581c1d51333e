package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// span is ports of one protocol, from first to last; of icmp, which has no ports, it is 0 to 0.
type span struct {
	protocol    cluster.Protocol
	first, last uint16
}

// everyPort is what may be asked of a protocol.
func everyPort(p cluster.Protocol) span {
	if p == icmp {
		return span{protocol: p}
	}
	return span{p, 1, 65535}
}

// protocols lists those that are asked about, in the order of texts.
func protocols() []cluster.Protocol { return append(cluster.Protocols(), icmp) }

// number is the IP protocol.
func number(p cluster.Protocol, is4 bool) verdict.Protocol {
	switch p {
	case cluster.TCP:
		return verdict.TCP
	case cluster.UDP:
		return verdict.UDP
	case cluster.SCTP:
		return verdict.SCTP
	}
	if is4 {
		return verdict.ICMP
	}
	return verdict.ICMPv6
}

// PortSet is ports of protocols. The zero value is empty.
type PortSet struct{ spans []span }

// add adds ports. Those of a protocol must come in ascending order.
func (s *PortSet) add(more span) {
	for i := range s.spans {
		if have := &s.spans[i]; have.protocol == more.protocol && have.last+1 == more.first {
			have.last = more.last
			return
		}
	}
	s.spans = append(s.spans, more)
}

// without is the ports that are not in another set.
func (s PortSet) without(t PortSet) PortSet {
	var out PortSet
	for _, x := range s.spans {
		for port := int(x.first); port <= int(x.last); port++ {
			if one := (span{x.protocol, uint16(port), uint16(port)}); !t.has(one) {
				out.add(one)
			}
		}
	}
	return out
}

// has is true when all of a span is in one span of the set.
func (s PortSet) has(x span) bool {
	return slices.ContainsFunc(s.spans, func(y span) bool {
		return x.protocol == y.protocol && y.first <= x.first && x.last <= y.last
	})
}

// size is how many ports there are.
func (s PortSet) size() int {
	n := 0
	for _, x := range s.spans {
		n += int(x.last-x.first) + 1
	}
	return n
}

// All is true when every port of every protocol is in the set.
func (s PortSet) All() bool {
	n := 0
	for _, p := range protocols() {
		n += PortSet{[]span{everyPort(p)}}.size()
	}
	return s.size() == n
}

// String is "all", "none", or such as "tcp/80,443 udp icmp".
func (s PortSet) String() string {
	switch {
	case s.All():
		return "all"
	case len(s.spans) == 0:
		return "none"
	}
	var out []string
	for _, p := range protocols() {
		var ports []string
		for _, x := range s.spans {
			switch {
			case x.protocol != p:
			case x == everyPort(p):
				out = append(out, strings.ToLower(string(p)))
			case x.first == x.last:
				ports = append(ports, fmt.Sprint(x.first))
			default:
				ports = append(ports, fmt.Sprintf("%d-%d", x.first, x.last))
			}
		}
		if len(ports) > 0 {
			out = append(out, strings.ToLower(string(p))+"/"+strings.Join(ports, ","))
		}
	}
	return strings.Join(out, " ")
}

// MarshalText implements encoding.TextMarshaler.
func (s PortSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// spans divides what is asked into spans of ports that no ACL on the way of a packet tells apart.
func spans(e *verdict.Evaluator, p verdict.Packet, asked span) ([]span, error) {
	if asked.first == asked.last {
		return []span{asked}, nil
	}
	limits, err := e.PortLimits(p)
	if err != nil {
		return nil, err
	}
	var out []span
	first := asked.first
	for _, limit := range limits {
		if limit > first && limit <= asked.last {
			out = append(out, span{asked.protocol, first, limit - 1})
			first = limit
		}
	}
	return append(out, span{asked.protocol, first, asked.last}), nil
}

// compareSets orders sets for people: small ones first.
func compareSets(a, b PortSet) int {
	if d := a.size() - b.size(); d != 0 {
		return d
	}
	return slices.CompareFunc(a.spans, b.spans, func(x, y span) int {
		if x.protocol != y.protocol {
			return slices.Index(protocols(), x.protocol) - slices.Index(protocols(), y.protocol)
		}
		return int(x.first) - int(y.first)
	})
}
