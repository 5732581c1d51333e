package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Keys of Pod annotations. The master writes both in one patch.
const (
	PodNetworks = "k8s.ovn.org/pod-networks" // the full form, see PodNetwork
	PodClassic  = "ovn"                      // {"gateway_ip":..,"ip_address":..,"mac_address":..}
)

// What KubeVirt says of a pod in which a virtual machine runs. MachineArrived is the key of an annotation of a pod that
// a running machine moves to: the time at which the machine has arrived there.
const (
	MachineLabel   = "vm.kubevirt.io/name"
	MachineArrived = "kubevirt.io/migration-target-ready-timestamp"
)

// Route is one extra route of a pod.
type Route struct {
	Dest    netip.Prefix `json:"dest"`
	NextHop netip.Addr   `json:"nextHop"`
}

// PodNetwork is a pod's attachment to a network.
type PodNetwork struct {
	IPs      []netip.Prefix // addresses with the subnet's prefix length, one per family, IPv4 first
	MAC      ipnet.MAC
	Gateways []netip.Addr // the default gateway of each family, in the order of IPs
	Routes   []Route
	MTU      int // in bytes; 0 is the MTU of the node's other pods
	// Physical is the network outside that the node's ovn-bridge-mappings must have for the interface; "" for none.
	Physical string
	// Waiting says why there is no attachment yet, or no more; "" when there is one. A pod does not start before. The
	// rest is what the pod had, so that it gets that back.
	Waiting string
}

// The least MTU of an interface, without and with IPv6 (RFC 791, RFC 8200), and the largest.
const (
	MinMTU     = 576
	MinMTUIPv6 = 1280
	MaxMTU     = 65535
)

// podNetworkJSON is the wire form. Readers of the older form find a single-stack pod's lists repeated in ip_address
// and gateway_ip.
type podNetworkJSON struct {
	IPs       []string `json:"ip_addresses,omitempty"`
	MAC       string   `json:"mac_address,omitempty"`
	Gateways  []string `json:"gateway_ips,omitempty"`
	Routes    []Route  `json:"routes,omitempty"`
	IPAddress string   `json:"ip_address,omitempty"`
	GatewayIP string   `json:"gateway_ip,omitempty"`
	MTU       int      `json:"mtu,omitempty"`
	Physical  string   `json:"physical_network,omitempty"`
	Role      string   `json:"role,omitempty"`
	Waiting   string   `json:"waiting,omitempty"`
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
	for key, n := range PodNetworksOf(value) {
		if in, iface := names.EntryOf(key); in == network && n.Waiting == "" {
			out[iface] = n
		}
	}
	return out
}

// PodNetworksAt reads what a pod has or had at an interface, by key. It leaves out what is malformed.
func PodNetworksAt(value, iface string) map[string]PodNetwork {
	out := PodNetworksOf(value)
	maps.DeleteFunc(out, func(key string, _ PodNetwork) bool {
		_, at := names.EntryOf(key)
		return at != iface
	})
	return out
}

// PodNetworksOf reads what a pod has or had, by key. It leaves out what is malformed.
func PodNetworksOf(value string) map[string]PodNetwork {
	out := map[string]PodNetwork{}
	if key, j, written := canonical(value); written && len(value) <= maxSize {
		if n, err := j.attachment(key); err == nil {
			out[key] = n
		}
		return out
	}
	all, _ := entries(value, podNetworksExample, maxSize)
	for key, raw := range all {
		if n, err := attachment(key, raw); err == nil {
			out[key] = n
		}
	}
	return out
}

// PodAttachments reads all attachments, by key. It is an error that one is not there yet. For errors see NodeSubnetsIn.
func PodAttachments(value string) (map[string]PodNetwork, error) {
	all, err := entries(value, podNetworksExample, maxSize)
	if err != nil {
		return nil, refused(PodNetworks, value, err)
	}
	out := make(map[string]PodNetwork, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out[key], err = attachment(key, all[key])
		if out[key].Waiting != "" {
			err = errors.New(out[key].Waiting)
		}
		if err != nil {
			return nil, refused(PodNetworks, value, fmt.Errorf("entry %q: %w", brief(key), err))
		}
	}
	return out, nil
}

// AnyWaits is true when an entry says why there is no attachment.
func AnyWaits(value string) bool {
	all, _ := entries(value, podNetworksExample, maxSize)
	for key, raw := range all {
		if n, err := attachment(key, raw); err == nil && n.Waiting != "" {
			return true
		}
	}
	return false
}

// PodNetworkIn reads the attachment of a key in a pod-networks annotation; ok is false when there is no entry, or one
// that says why there is no attachment. For errors see NodeSubnetsIn.
func PodNetworkIn(value, key string) (n PodNetwork, ok bool, err error) {
	n, ok, _, err = PodNetworkAmong(value, key)
	return n, ok, err
}

// PodNetworkAmong is PodNetworkIn, and tells how many entries of other keys there are.
func PodNetworkAmong(value, key string) (n PodNetwork, ok bool, others int, err error) {
	if at, j, written := canonical(value); written && at == key && len(value) <= maxSize {
		n, err = j.attachment(key)
		ok = true
	} else {
		n, ok, others, err = amongEntries(value, key)
	}
	if err != nil {
		return PodNetwork{}, false, 0, refused(PodNetworks, value, err)
	}
	return n, ok, others, nil
}

// amongEntries is PodNetworkAmong for an annotation of any form.
func amongEntries(value, key string) (n PodNetwork, ok bool, others int, err error) {
	all, err := entries(value, podNetworksExample, maxSize)
	others = len(all)
	if raw, is := all[key]; is {
		others--
		n, err = attachment(key, raw)
		ok = n.Waiting == ""
	}
	return n, ok, others, err
}

// attachment reads the entry of a key. Only the interface that Kubernetes itself asks for, "", must have an address:
// other networks may have no subnets.
func attachment(key string, raw json.RawMessage) (PodNetwork, error) {
	var j podNetworkJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return PodNetwork{}, malformed(err, podNetworksExample)
	}
	return j.attachment(key)
}

func (j podNetworkJSON) attachment(key string) (PodNetwork, error) {
	_, iface := names.EntryOf(key)
	return j.podNetwork(iface == "")
}

func (j podNetworkJSON) podNetwork(addressed bool) (PodNetwork, error) {
	if j.Waiting != "" && !addressed {
		waiting := j.Waiting
		j.Waiting = ""
		n, _ := j.podNetwork(false) // what the pod had, if anything
		n.Waiting = brief(waiting)
		return n, nil
	}
	if len(j.IPs) == 0 && j.IPAddress != "" {
		j.IPs = []string{j.IPAddress}
	}
	if len(j.Gateways) == 0 && j.GatewayIP != "" {
		j.Gateways = []string{j.GatewayIP}
	}
	n := PodNetwork{Routes: j.Routes, MTU: j.MTU, Physical: j.Physical}
	var err error
	if len(j.IPs) > 0 || addressed {
		n.IPs, err = prefixes(j.IPs)
	}
	if err != nil {
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
	if err := n.checkMTU(); err != nil {
		return PodNetwork{}, err
	}
	return n, nil
}

// checkMTU is why an interface with these addresses can't have the MTU.
func (n PodNetwork) checkMTU() error {
	least := MinMTU
	for _, p := range n.IPs {
		if p.Addr().Is6() {
			least = MinMTUIPv6
		}
	}
	if n.MTU != 0 && (n.MTU < least || n.MTU > MaxMTU) {
		return fmt.Errorf("mtu: %d: want %d to %d bytes", n.MTU, least, MaxMTU)
	}
	return nil
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
		out[key] = n.wire(key)
	}
	return marshal(out)
}

// wire is the wire form of an attachment.
func (n PodNetwork) wire(key string) podNetworkJSON {
	j := podNetworkJSON{MAC: n.MAC.String(), Routes: n.Routes, MTU: n.MTU, Physical: n.Physical,
		Role: "primary"}
	if len(n.Gateways) == 0 {
		j.Role = "secondary" // the pod's default routes lead elsewhere
		if key == defaultNetwork {
			j.Role = "infrastructure-locked" // nothing but probes reaches the pod here
		}
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
	if n.Waiting != "" {
		j.Waiting, j.Routes, j.MTU, j.Physical, j.Role = brief(n.Waiting), nil, 0, "", ""
		if n.MAC == (ipnet.MAC{}) {
			j.MAC = ""
		}
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
