package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The kernel parameters that say which source ports Linux chooses, also for IPv6 (ip-sysctl.rst).
const (
	localPorts    = "net/ipv4/ip_local_port_range"
	reservedPorts = "net/ipv4/ip_local_reserved_ports"
)

// checkLocalPorts looks whether Linux may choose a port of names.SNATPorts for a connection of this node. A policy
// would take it for one that the node forwards, and drop a probe. On a gateway its answers would go to a pod.
func checkLocalPorts(_ context.Context, h *facts) Finding {
	have, err := h.t.Kernel.Read([]hostplan.Item{hostplan.Sysctl{Path: localPorts}, hostplan.Sysctl{Path: reservedPorts}})
	if err != nil {
		return unchecked("%v", err)
	}
	value := map[string]string{}
	for _, i := range have {
		if s, is := i.(hostplan.Sysctl); is {
			value[s.Path] = strings.Join(strings.Fields(s.Value), " ")
		}
	}
	chosen, known := portRange(value[localPorts], " ")
	if !known {
		return unchecked("%s is %q: want two numbers", localPorts, value[localPorts])
	}
	reserved := value[reservedPorts]
	for port := max(chosen.first, names.FirstSNATPort); port <= min(chosen.last, names.LastSNATPort); port++ {
		if !contains(reserved, port) {
			all := strings.TrimPrefix(reserved+","+names.SNATPorts, ",")
			return problem("connections of this node may have source port %d (%s is %s): ports %s are for those of pods and "+
				"for those that the node forwards to pods", port, localPorts, value[localPorts], names.SNATPorts).
				fixed(fmt.Sprintf("sysctl -w net.ipv4.ip_local_reserved_ports=%s  # and the same in /etc/sysctl.d", all))
		}
	}
	return ok("connections of this node have source ports %s, none of %s", value[localPorts], names.SNATPorts)
}

// ports is a range of ports, with both ends.
type ports struct{ first, last int }

func portRange(text, separator string) (p ports, ok bool) {
	first, last, two := strings.Cut(text, separator)
	if !two {
		last = first
	}
	var err1, err2 error
	p.first, err1 = strconv.Atoi(first)
	p.last, err2 = strconv.Atoi(last)
	return p, err1 == nil && err2 == nil
}

// contains tells whether a list such as "8080,9000-9010" has the port.
func contains(list string, port int) bool {
	for part := range strings.SplitSeq(list, ",") {
		if p, ok := portRange(part, "-"); ok && p.first <= port && port <= p.last {
			return true
		}
	}
	return false
}
