package annotation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
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

// PodNetwork is a pod's attachment to a network.
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

type podClassicJSON struct {
	GatewayIP string `json:"gateway_ip"`
	IPAddress string `json:"ip_address"`
	MAC       string `json:"mac_address"`
}

// podNetworksExample is a pod-networks annotation, for errors.
const podNetworksExample = `{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
	`"gateway_ips":["10.244.1.1"]}}`

// ParsePodNetworks reads the attachment to the cluster's own network, which must be there. For errors see
// NodeSubnetsIn.
func ParsePodNetworks(value string) (PodNetwork, error) {
	n, ok, err := PodNetworkIn(value, defaultNetwork)
	return n, ownEntry(PodNetworks, value, podNetworksExample, ok, err)
}

// PodNetworksIn reads the attachments to a network, by interface. It leaves out those that are malformed.
func PodNetworksIn(value string, network names.Network) map[string]PodNetwork {
	out := map[string]PodNetwork{}
	all, _ := entries(value, podNetworksExample)
	for key, raw := range all {
		var j podNetworkJSON
		in, iface := names.EntryOf(key)
		if in != network || json.Unmarshal(raw, &j) != nil {
			continue
		}
		if n, err := j.podNetwork(); err == nil {
			out[iface] = n
		}
	}
	return out
}

// PodNetworkIn reads the attachment of a key in a pod-networks annotation; ok is false when there is no entry. For
// errors see NodeSubnetsIn.
func PodNetworkIn(value, key string) (n PodNetwork, ok bool, err error) {
	var j podNetworkJSON
	if ok, err = entry(value, key, podNetworksExample, &j); ok {
		n, err = j.podNetwork()
	}
	if err != nil {
		return PodNetwork{}, false, refused(PodNetworks, value, err)
	}
	return n, ok, nil
}

func (j podNetworkJSON) podNetwork() (PodNetwork, error) {
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

// MarshalPodNetworks writes a pod-networks annotation with the attachment to the cluster's own network alone.
func MarshalPodNetworks(n PodNetwork) string {
	return MarshalAttachments(map[string]PodNetwork{defaultNetwork: n})
}

// MarshalAttachments writes a pod-networks annotation with attachments by key; "" for none.
func MarshalAttachments(nets map[string]PodNetwork) string {
	if len(nets) == 0 {
		return ""
	}
	out := make(map[string]podNetworkJSON, len(nets))
	for key, n := range nets {
		out[key] = n.wire()
	}
	return marshal(out)
}

// wire is the wire form of an attachment.
func (n PodNetwork) wire() podNetworkJSON {
	j := podNetworkJSON{MAC: n.MAC.String(), Routes: n.Routes, Role: "primary"}
	if len(n.Gateways) == 0 {
		j.Role = "secondary" // the pod's default routes lead elsewhere
	}
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
	return j
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
