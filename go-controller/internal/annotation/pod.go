package annotation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Keys of Pod annotations. The master writes both in one patch.
const (
	PodNetworks = "k8s.ovn.org/pod-networks" // the full form, see PodNetwork
	PodClassic  = "ovn"                      // {"gateway_ip":..,"ip_address":..,"mac_address":..}
)

// Route is one extra route of a pod.
type Route struct {
	Dest    netip.Prefix `json:"dest"`
	NextHop netip.Addr   `json:"nextHop"`
}

// PodNetwork is a pod's attachment to the cluster network.
type PodNetwork struct {
	IPs      []netip.Prefix // addresses with the node subnet's prefix length, one per family, IPv4 first
	MAC      ipnet.MAC
	Gateways []netip.Addr // the default gateway of each family, in the order of IPs
	Routes   []Route
}

// podNetworkJSON is the wire form. Readers of the older form find a single-stack pod's lists repeated in ip_address
// and gateway_ip.
type podNetworkJSON struct {
	IPs       []string `json:"ip_addresses"`
	MAC       string   `json:"mac_address"`
	Gateways  []string `json:"gateway_ips,omitempty"`
	Routes    []Route  `json:"routes,omitempty"`
	IPAddress string   `json:"ip_address,omitempty"`
	GatewayIP string   `json:"gateway_ip,omitempty"`
	Role      string   `json:"role,omitempty"`
}

// podNetworksJSON is the whole annotation as we write it. Annotations that we read may have other networks, too.
type podNetworksJSON struct {
	Default podNetworkJSON `json:"default"` // defaultNetwork
}

type podClassicJSON struct {
	GatewayIP string `json:"gateway_ip"`
	IPAddress string `json:"ip_address"`
	MAC       string `json:"mac_address"`
}

// podNetworksExample is a pod-networks annotation, for errors.
const podNetworksExample = `{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
	`"gateway_ips":["10.244.1.1"]}}`

// ParsePodNetworks reads a pod-networks annotation. For errors see ParseNodeSubnets.
func ParsePodNetworks(value string) (PodNetwork, error) {
	return parse(PodNetworks, value, parsePodNetworks)
}

func parsePodNetworks(value string) (PodNetwork, error) {
	var nets map[string]podNetworkJSON
	if err := json.Unmarshal([]byte(value), &nets); err != nil {
		return PodNetwork{}, malformed(err, podNetworksExample)
	}
	j, ok := nets[defaultNetwork]
	if !ok {
		return PodNetwork{}, noNetwork(podNetworksExample)
	}
	if len(j.IPs) == 0 && j.IPAddress != "" {
		j.IPs = []string{j.IPAddress}
	}
	if len(j.Gateways) == 0 && j.GatewayIP != "" {
		j.Gateways = []string{j.GatewayIP}
	}
	n := PodNetwork{Routes: j.Routes}
	var err error
	if n.IPs, err = prefixes(j.IPs); err != nil {
		return PodNetwork{}, fmt.Errorf("ip_addresses: %w", err)
	}
	hw, err := net.ParseMAC(j.MAC)
	if err != nil || len(hw) != len(n.MAC) {
		return PodNetwork{}, fmt.Errorf("mac_address: %q is not an Ethernet address such as 0a:58:0a:f4:01:03", j.MAC)
	}
	copy(n.MAC[:], hw)
	for _, g := range j.Gateways {
		a, err := netip.ParseAddr(g)
		if err != nil || !plainAddr(a) {
			return PodNetwork{}, fmt.Errorf("gateway_ips: %q is not an IP address such as 10.244.1.1", g)
		}
		n.Gateways = append(n.Gateways, a)
	}
	for _, r := range n.Routes {
		if !r.Dest.IsValid() || r.Dest.Addr().Is4In6() || !plainAddr(r.NextHop) {
			return PodNetwork{}, fmt.Errorf("routes: dest %q, nextHop %q: want a CIDR and an IP address", r.Dest, r.NextHop)
		}
	}
	return n, nil
}

// plainAddr reports whether a means the same on every host: it has no zone and is not IPv4-mapped.
func plainAddr(a netip.Addr) bool { return a.IsValid() && a.Zone() == "" && !a.Is4In6() }

// MarshalPodNetworks writes a pod-networks annotation.
func MarshalPodNetworks(n PodNetwork) string {
	j := podNetworkJSON{MAC: n.MAC.String(), Routes: n.Routes, Role: "primary"}
	for _, p := range n.IPs {
		j.IPs = append(j.IPs, p.String())
	}
	for _, g := range n.Gateways {
		j.Gateways = append(j.Gateways, g.String())
	}
	if len(j.IPs) == 1 {
		j.IPAddress = j.IPs[0]
	}
	if len(j.Gateways) == 1 {
		j.GatewayIP = j.Gateways[0]
	}
	return marshal(podNetworksJSON{j})
}

// MarshalPodClassic writes the classic annotation, which has only the pod's first address: IPv4 if it has one.
func MarshalPodClassic(n PodNetwork) string {
	j := podClassicJSON{MAC: n.MAC.String()}
	if len(n.IPs) > 0 {
		j.IPAddress = n.IPs[0].String()
	}
	if len(n.Gateways) > 0 {
		j.GatewayIP = n.Gateways[0].String()
	}
	return marshal(j)
}
