package hostplan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The TCP ports of OVN's databases, for clients and for Raft (ovn-ctl(8)).
const (
	firstDatabasePort = 6641
	lastDatabasePort  = 6644
)

// DatabaseDrop drops what pods send to the ports of OVN's databases. It concerns this node, by any of its addresses,
// and the databases' servers. Equal contents have equal values.
type DatabaseDrop struct {
	Link    string // the management port's interface, which need not exist
	Servers string // addresses of the servers that Open vSwitch is told, sorted, with commas
	Ports   string // ranges of TCP ports such as 6641-6644, with commas
}

// NewDatabaseDrop is the item of a node. A server that is told by name is left out.
func NewDatabaseDrop(f Facts, c config.Node) DatabaseDrop {
	var addrs []netip.Addr
	var others []uint16
	for _, remote := range []string{cmp.Or(c.SBAddress, f.Southbound), f.Northbound} {
		for _, host := range config.RemoteHosts(remote) {
			to, err := netip.ParseAddrPort(host)
			if err != nil {
				continue
			}
			if a := to.Addr().Unmap(); !a.IsLoopback() && !a.IsUnspecified() {
				addrs = append(addrs, a.WithZone(""))
			}
			if p := to.Port(); p < firstDatabasePort || p > lastDatabasePort {
				others = append(others, p)
			}
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	slices.Sort(others)
	ports := []PortRange{{firstDatabasePort, lastDatabasePort}}
	for _, p := range slices.Compact(others) {
		ports = append(ports, PortRange{p, p})
	}
	return DatabaseDrop{names.ManagementInterface(c.Name), Join(slices.Compact(addrs)), Join(ports)}
}

// Key implements Item.
func (d DatabaseDrop) Key() string { return "database-drop" }

// Device implements Item.
func (d DatabaseDrop) Device() string { return "" }

// String implements Item.
func (d DatabaseDrop) String() string {
	to := "this node"
	if d.Servers != "" {
		to += "," + d.Servers
	}
	return fmt.Sprintf("database-drop from %s to %s tcp %s", d.Link, to, d.Ports)
}

// To is what Servers and Ports list. What can't be read is left out.
func (d DatabaseDrop) To() (servers []netip.Addr, ports []PortRange) {
	for s := range strings.SplitSeq(d.Servers, ",") {
		if a, err := netip.ParseAddr(s); err == nil {
			servers = append(servers, a)
		}
	}
	for s := range strings.SplitSeq(d.Ports, ",") {
		if r, err := ParsePortRange(s); err == nil {
			ports = append(ports, r)
		}
	}
	return servers, ports
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

// String is FIRST-LAST.
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// ParsePortRange reads FIRST-LAST.
func ParsePortRange(s string) (r PortRange, err error) {
	first, last, _ := strings.Cut(s, "-")
	from, errFirst := strconv.ParseUint(first, 10, 16)
	to, errLast := strconv.ParseUint(last, 10, 16)
	if errFirst != nil || errLast != nil || from > to {
		return r, fmt.Errorf("port range %q: want FIRST-LAST", s)
	}
	return PortRange{uint16(from), uint16(to)}, nil
}
