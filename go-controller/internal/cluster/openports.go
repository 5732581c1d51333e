package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// OpenPorts is what a pod of a primary network opens in the cluster's own network. The zero value is nothing. Equal
// lists are equal values.
type OpenPorts struct{ list unique.Handle[string] }

// OpenPort is a port that a pod opens. A protocol without ports has the number 0.
type OpenPort struct {
	Protocol string // tcp, udp, sctp or icmp
	Number   uint16
}

// String is such as "tcp/80" or "icmp".
func (p OpenPort) String() string {
	if p.Number == 0 {
		return p.Protocol
	}
	return fmt.Sprintf("%s/%d", p.Protocol, p.Number)
}

// NewOpenPorts is the value of a list.
func NewOpenPorts(list []OpenPort) OpenPorts {
	if len(list) == 0 {
		return OpenPorts{}
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b OpenPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	var texts []string
	for _, p := range slices.Compact(list) {
		texts = append(texts, p.String())
	}
	return OpenPorts{unique.Make(strings.Join(texts, ", "))}
}

// String lists the ports, sorted: "icmp, tcp/80, tcp/443".
func (o OpenPorts) String() string {
	if o == (OpenPorts{}) {
		return ""
	}
	return o.list.Value()
}

// List is the ports, sorted.
func (o OpenPorts) List() (out []OpenPort) {
	for text := range strings.SplitSeq(o.String(), ", ") {
		protocol, number, _ := strings.Cut(text, "/")
		n, err := strconv.ParseUint(cmp.Or(number, "0"), 10, 16)
		if protocol == "" || err != nil {
			continue // String has no such text but that of no ports
		}
		out = append(out, OpenPort{protocol, uint16(n)})
	}
	return out
}

// Opens is what a pod opens in the cluster's own network. It is nothing while it is not known whether the pod is in a
// primary network, and for pods that are in none: those are open but for policies.
func (s *State) Opens(p *Pod) OpenPorts {
	if n := s.Namespaces[p.Name.Namespace]; n == nil || !n.InPrimary() {
		return OpenPorts{}
	}
	return p.Opens
}
