package translate

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// RouterOptions make a router learn neighbours only when it needs them. Otherwise it would learn from every ARP, and
// hold a flow for each pair of router ports: both grow with the square of the nodes (ovn-nb(5), Logical_Router).
func RouterOptions() map[string]string {
	return map[string]string{"always_learn_from_arp_request": "false", "dynamic_neigh_routers": "true"}
}

// Link is a router port and the switch port on its other side.
type Link struct {
	Port, Peer string         // their names: of the router port, of the switch port
	Addrs      []netip.Prefix // of the router port
	MAC        string         // "" derives it from Addrs
}

// Models are the rows of both ports.
func (l Link) Models() (*nbdb.LogicalRouterPort, *nbdb.LogicalSwitchPort) {
	mac := l.MAC
	if mac == "" {
		mac = ipnet.MACFor(ipnet.Addrs(l.Addrs)).String()
	}
	networks := make([]string, len(l.Addrs))
	for i, p := range l.Addrs {
		networks[i] = p.String()
	}
	slices.Sort(networks)
	return &nbdb.LogicalRouterPort{Name: l.Port, MAC: mac, Networks: networks},
		&nbdb.LogicalSwitchPort{Name: l.Peer, Type: "router", Addresses: []string{mac},
			Options: map[string]string{"router-port": l.Port}}
}

// Anywhere is 0.0.0.0/0 or ::/0.
func Anywhere(is4 bool) netip.Prefix {
	if is4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}
