package annotation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Keys of the Node annotations that make a node a gateway.
const (
	// L3GatewayConfig holds an L3Gateway. The node agent or gateway-init writes it.
	L3GatewayConfig = "k8s.ovn.org/l3-gateway-config"
	// GatewayJoinAddrs is written by the master, such as {"default":{"ipv4":"100.64.1.2/24","ipv6":""}}.
	GatewayJoinAddrs = "k8s.ovn.org/node-gateway-router-lrp-ifaddrs"
)

// The modes of a gateway.
const (
	GatewayShared   = "shared"   // the host and the gateway router share the bridge's address
	GatewayDisabled = "disabled" // the node is no gateway
)

// DefaultPhysicalNetwork is the default network_name of a gateway's localnet port.
const DefaultPhysicalNetwork = "physnet"

// maxVLAN is the highest VLAN id (IEEE 802.1Q).
const maxVLAN = 4094

// The smallest MTU of IPv4 (RFC 791), and the largest of an interface.
const (
	minMTU = 576
	maxMTU = 65535
)

// L3Gateway describes how a gateway node connects the cluster to the outside.
type L3Gateway struct {
	Bridge   string         // the node's external bridge; br-int if the NIC belongs to OVN alone and is a port of br-int
	Network  string         // name of the external network in ovn-bridge-mappings
	Port     string         // name of the external switch's port, <bridge>_<node> or <NIC>_<node>
	MAC      ipnet.MAC      // of the gateway router's external port: the NIC's
	IPs      []netip.Prefix // physical addresses, at most one per family, IPv4 first
	NextHops []netip.Addr   // default gateways, at most one per family, IPv4 first; may be empty
	VLAN     int            // VLAN id of the external switch, 0 for none
	NodePort bool           // whether the node's kernel serves node ports
	Rampout  []netip.Prefix // pod subnets whose egress traffic must use this gateway
	MTU      int            // of the external network in bytes, 0 if unknown
	PodMTU   int            // of the node's pods in bytes, 0 if unknown
	Out      string         // why the node's agent took the gateway out of service; "" while it is in service
}

// Equal reports whether g and h are the same. Either may be nil.
func (g *L3Gateway) Equal(h *L3Gateway) bool {
	if g == nil || h == nil {
		return g == h
	}
	return g.Bridge == h.Bridge && g.Network == h.Network && g.Port == h.Port && g.MAC == h.MAC && g.VLAN == h.VLAN &&
		g.NodePort == h.NodePort && g.MTU == h.MTU && g.PodMTU == h.PodMTU && g.Out == h.Out &&
		slices.Equal(g.IPs, h.IPs) && slices.Equal(g.NextHops, h.NextHops) && slices.Equal(g.Rampout, h.Rampout)
}

// NextHop returns the default gateway of a family. ok is false if there is none.
func (g *L3Gateway) NextHop(is4 bool) (a netip.Addr, ok bool) {
	for _, a := range g.NextHops {
		if a.Is4() == is4 {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// l3GatewayJSON is the wire form. Readers of the older form find single-family lists repeated in ip-address and
// next-hop. This project added physical-network, rampout-ip-subnets, mtu, pod-mtu and out-of-service.
type l3GatewayJSON struct {
	Mode     string   `json:"mode"`
	Bridge   string   `json:"bridge-id,omitempty"`
	Port     string   `json:"interface-id,omitempty"`
	MAC      string   `json:"mac-address,omitempty"`
	IPs      []string `json:"ip-addresses,omitempty"`
	IP       string   `json:"ip-address,omitempty"`
	NextHops []string `json:"next-hops,omitempty"`
	NextHop  string   `json:"next-hop,omitempty"`
	NodePort string   `json:"node-port-enable,omitempty"`
	VLAN     string   `json:"vlan-id,omitempty"`
	Network  string   `json:"physical-network,omitempty"`
	Rampout  []string `json:"rampout-ip-subnets,omitempty"`
	MTU      int      `json:"mtu,omitempty"`
	PodMTU   int      `json:"pod-mtu,omitempty"`
	Out      string   `json:"out-of-service,omitempty"`
}

// l3GatewayExample is an l3-gateway-config annotation, for errors.
const l3GatewayExample = `{"default":{"mode":"shared","bridge-id":"breth0","interface-id":"breth0_n1",` +
	`"mac-address":"02:42:ac:12:00:03","ip-addresses":["172.18.0.3/16"],"next-hops":["172.18.0.1"]}}`

// ParseL3Gateway reads an l3-gateway-config annotation. It returns nil if the annotation says that the node is no
// gateway. For errors see NodeSubnetsIn.
func ParseL3Gateway(value string) (*L3Gateway, error) {
	return parse(L3GatewayConfig, value, parseL3Gateway)
}

func parseL3Gateway(value string) (*L3Gateway, error) {
	var nets map[string]l3GatewayJSON
	if err := json.Unmarshal([]byte(value), &nets); err != nil {
		return nil, malformed(err, l3GatewayExample)
	}
	j, ok := nets[defaultNetwork]
	if !ok {
		return nil, noNetwork(l3GatewayExample)
	}
	switch j.Mode {
	case GatewayDisabled, "":
		return nil, nil
	case GatewayShared:
	default:
		return nil, fmt.Errorf("mode: %q, want %q or %q", j.Mode, GatewayShared, GatewayDisabled)
	}
	return j.gateway()
}

func (j l3GatewayJSON) gateway() (*L3Gateway, error) {
	g := &L3Gateway{Bridge: j.Bridge, Network: j.Network, Port: j.Port, NodePort: j.NodePort == "true",
		MTU: j.MTU, PodMTU: j.PodMTU, Out: j.Out}
	if g.Bridge == "" || g.Port == "" {
		return nil, fmt.Errorf("bridge-id %q, interface-id %q: want the external bridge and the name of its localnet port",
			g.Bridge, g.Port)
	}
	if g.Network == "" {
		g.Network = DefaultPhysicalNetwork
	}
	hw, err := net.ParseMAC(j.MAC)
	if err != nil || len(hw) != len(g.MAC) {
		return nil, fmt.Errorf("mac-address: %q is not an Ethernet address such as 02:42:ac:12:00:03", j.MAC)
	}
	copy(g.MAC[:], hw)
	if g.MAC == (ipnet.MAC{}) || g.MAC[0]&1 != 0 {
		return nil, fmt.Errorf("mac-address: %s is not the address of one interface: want the NIC's", g.MAC)
	}
	if len(j.IPs) == 0 && j.IP != "" {
		j.IPs = []string{j.IP}
	}
	if g.IPs, err = prefixes(j.IPs); err != nil {
		return nil, fmt.Errorf("ip-addresses: %w", err)
	}
	if len(j.NextHops) == 0 && j.NextHop != "" {
		j.NextHops = []string{j.NextHop}
	}
	if g.NextHops, err = nextHops(j.NextHops, g.IPs); err != nil {
		return nil, fmt.Errorf("next-hops: %w", err)
	}
	if j.VLAN != "" {
		if g.VLAN, err = strconv.Atoi(j.VLAN); err != nil || g.VLAN < 0 || g.VLAN > maxVLAN {
			return nil, fmt.Errorf("vlan-id: %q, want a number from 0 (none) to %d", j.VLAN, maxVLAN)
		}
	}
	for key, mtu := range map[string]int{"mtu": j.MTU, "pod-mtu": j.PodMTU} {
		if mtu != 0 && (mtu < minMTU || mtu > maxMTU) {
			return nil, fmt.Errorf("%s: %d, want %d to %d, or 0 if unknown", key, mtu, minMTU, maxMTU)
		}
	}
	for _, s := range j.Rampout {
		p, err := netip.ParsePrefix(s)
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("rampout-ip-subnets: %q is not a CIDR such as 10.244.1.0/24", s)
		}
		if !slices.Contains(g.Rampout, p) {
			g.Rampout = append(g.Rampout, p)
		}
	}
	return g, nil
}

// nextHops parses a list with at most one address for each family of ips.
func nextHops(list []string, ips []netip.Prefix) ([]netip.Addr, error) {
	var out []netip.Addr
	has := map[bool]bool{}
	for _, p := range ips {
		has[p.Addr().Is4()] = true
	}
	seen := map[bool]bool{}
	for _, s := range list {
		a, err := netip.ParseAddr(s)
		if err != nil || !plainAddr(a) {
			return nil, fmt.Errorf("%q is not an IP address such as 172.18.0.1", s)
		}
		if seen[a.Is4()] || !has[a.Is4()] {
			return nil, fmt.Errorf("%s: want at most one of each address family that ip-addresses has", a)
		}
		seen[a.Is4()] = true
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, nil
}

// MarshalL3Gateway writes an l3-gateway-config annotation. nil means that the node is no gateway.
func MarshalL3Gateway(g *L3Gateway) string {
	if g == nil {
		return marshal(map[string]l3GatewayJSON{defaultNetwork: {Mode: GatewayDisabled}})
	}
	j := l3GatewayJSON{Mode: GatewayShared, Bridge: g.Bridge, Port: g.Port, MAC: g.MAC.String(), Network: g.Network,
		NodePort: strconv.FormatBool(g.NodePort), VLAN: strconv.Itoa(g.VLAN), MTU: g.MTU, PodMTU: g.PodMTU, Out: g.Out}
	for _, p := range g.IPs {
		j.IPs = append(j.IPs, p.String())
	}
	for _, a := range g.NextHops {
		j.NextHops = append(j.NextHops, a.String())
	}
	for _, p := range g.Rampout {
		j.Rampout = append(j.Rampout, p.String())
	}
	if len(j.IPs) == 1 {
		j.IP = j.IPs[0]
	}
	if len(j.NextHops) == 1 {
		j.NextHop = j.NextHops[0]
	}
	return marshal(map[string]l3GatewayJSON{defaultNetwork: j})
}

// GatewayJoins is the entries of a node-gateway-router-lrp-ifaddrs annotation.
type GatewayJoins struct{ nodeEntries }

const gatewayJoinsExample = `{"default":{"ipv4":"100.64.1.2/24","ipv6":"fd98::2/64"}}`

// ReadGatewayJoins reads such an annotation.
func ReadGatewayJoins(value string) GatewayJoins {
	return GatewayJoins{readEntries(value, gatewayJoinsExample)}
}

// In is the entry of a network: the addresses of the node's gateway router on the join switch, IPv4 first. ok is false
// when there is no entry. For errors see NodeSubnetsIn.
func (g GatewayJoins) In(network names.Network) (ps []netip.Prefix, ok bool, err error) {
	var j addrPairJSON
	if ok, err = g.entry(network, &j); ok {
		list := slices.DeleteFunc([]string{j.IPv4, j.IPv6}, func(s string) bool { return s == "" })
		ps, err = prefixes(list)
	}
	if err != nil {
		return nil, false, refused(GatewayJoinAddrs, g.value, err)
	}
	return ps, ok, nil
}

// SetGatewayJoinAddrs is a node-gateway-router-lrp-ifaddrs annotation with the entries of networks. One without
// addresses has no entry.
func SetGatewayJoinAddrs(value string, addrs map[names.Network][]netip.Prefix) string {
	return set(value, addrs, func(ps []netip.Prefix) any { return addrPair(ps) })
}

// MarshalGatewayJoinAddrs writes the same annotation with only the cluster's own network; "" for no addresses.
func MarshalGatewayJoinAddrs(addrs []netip.Prefix) string {
	return SetGatewayJoinAddrs("", map[names.Network][]netip.Prefix{names.Own: addrs})
}
