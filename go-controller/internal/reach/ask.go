package reach

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// icmp stands beside the protocols that have ports.
const icmp = cluster.Protocol("ICMP")

// Kind is what one side of a question is.
type Kind string

// The kinds.
const (
	Pod     Kind = "pod"
	Service Kind = "svc"
	Node    Kind = "node"
	Address Kind = "address"
	DNS     Kind = "dns" // a name of domainNames
)

// Side is one side of a question, as it was asked.
type Side struct {
	Kind Kind
	Name cluster.Name // of an object
	Addr netip.Addr   // of kind Address
}

// String is "pod/shop/web-0", or an address.
func (s Side) String() string {
	if s.Kind == Address {
		return s.Addr.String()
	}
	return string(s.Kind) + "/" + s.Name.String()
}

// Asked is the port that a question is about; the zero value stands for all ports of all protocols.
type Asked struct {
	Number   uint16
	Name     string           // instead of Number
	Protocol cluster.Protocol // "" when the question does not say
}

// String is what stands behind a name: ":80/TCP", or "" for all.
func (a Asked) String() string {
	if a == (Asked{}) {
		return ""
	}
	out := ":" + a.Name
	if a.Number != 0 {
		out = fmt.Sprintf(":%d", a.Number)
	}
	if a.Protocol != "" {
		out += "/" + string(a.Protocol)
	}
	return out
}

// Question asks whether From may connect to Port of To.
type Question struct {
	From, To Side
	Port     Asked
}

// server is To and Port as text.
func (q Question) server() string {
	if q.To.Kind == Address && q.To.Addr.Is6() && q.Port != (Asked{}) {
		return "[" + q.To.String() + "]" + q.Port.String()
	}
	return q.To.String() + q.Port.String()
}

// Ask reads a question. from is "NAMESPACE/POD", "pod/NAMESPACE/NAME", "node/NAME" or an address. to may also be
// "svc/NAMESPACE/NAME", or a name in DNS. It may end in ":PORT", ":PORT/PROTOCOL" or ":/PROTOCOL", and the port may be
// a name. An IPv6 address before a port is in brackets.
func Ask(from, to string) (q Question, err error) {
	if q.From, err = parseSide(from); err != nil {
		return q, err
	}
	switch q.From.Kind {
	case Service:
		return q, fmt.Errorf("%q: a Service connects to nobody: want one of its pods", from)
	case DNS:
		return q, fmt.Errorf("%q: a name in DNS connects to nobody: want an address", from)
	}
	name, port := cutPort(to)
	if q.To, err = parseSide(name); err != nil {
		return q, err
	}
	q.Port, err = parsePort(port)
	return q, err
}

// cutPort cuts ":PORT/PROTOCOL" off.
func cutPort(to string) (name, port string) {
	if bracket := strings.LastIndexByte(to, ']'); bracket >= 0 {
		return to[:bracket+1], to[bracket+1:]
	}
	if _, err := netip.ParseAddr(to); err == nil {
		return to, ""
	}
	if i := strings.IndexByte(to, ':'); i >= 0 {
		return to[:i], to[i:]
	}
	return to, ""
}

const wantSide = "want NAMESPACE/POD, pod/NAMESPACE/NAME, svc/NAMESPACE/NAME, node/NAME, an IP address or a name of DNS"

func parseSide(text string) (Side, error) {
	bare := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if a, err := netip.ParseAddr(bare); err == nil {
		if a.Is4In6() || a.Zone() != "" || a.IsMulticast() {
			return Side{}, fmt.Errorf("%q: want the address of one host, such as 192.0.2.1 or 2001:db8::1", text)
		}
		return Side{Kind: Address, Addr: a}, nil
	}
	if name, err := cluster.ParseDomainName(text); err == nil {
		return Side{Kind: DNS, Name: cluster.Name{Name: name}}, nil
	}
	parts := strings.Split(text, "/")
	kind, namespaced := Pod, true
	switch parts[0] {
	case "pod":
		parts = parts[1:]
	case "svc", "service":
		kind, parts = Service, parts[1:]
	case "node":
		kind, namespaced, parts = Node, false, parts[1:]
	}
	for _, p := range parts {
		if p == "" {
			return Side{}, fmt.Errorf("%q: %s", text, wantSide)
		}
	}
	switch {
	case namespaced && len(parts) == 2:
		return Side{Kind: kind, Name: cluster.Name{Namespace: parts[0], Name: parts[1]}}, nil
	case !namespaced && len(parts) == 1:
		return Side{Kind: kind, Name: cluster.Name{Name: parts[0]}}, nil
	}
	return Side{}, fmt.Errorf("%q: %s", text, wantSide)
}

func parsePort(text string) (Asked, error) {
	if text == "" {
		return Asked{}, nil
	}
	wrong := fmt.Errorf("port %q: want :PORT, :PORT/PROTOCOL or :/PROTOCOL, of TCP, UDP, SCTP or ICMP", text)
	port, protocol, divided := strings.Cut(strings.TrimPrefix(text, ":"), "/")
	out := Asked{Protocol: cluster.Protocol(strings.ToUpper(protocol))}
	switch out.Protocol {
	case "":
		if divided || port == "" {
			return Asked{}, wrong
		}
	case icmp:
		if port != "" {
			return Asked{}, wrong
		}
	case cluster.TCP, cluster.UDP, cluster.SCTP:
	default:
		return Asked{}, wrong
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case text[0] != ':', err == nil && number == 0, err != nil && cmp.Or(port, "x")[0] <= '9':
		return Asked{}, wrong
	case err == nil:
		out.Number = uint16(number)
	default:
		out.Name = port
	}
	return out, nil
}
