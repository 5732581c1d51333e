package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Keys of Node annotations.
const (
	NodeSubnets       = "k8s.ovn.org/node-subnets"                 // {"default":["10.244.1.0/24"]}, from the master
	NodeChassisID     = "k8s.ovn.org/node-chassis-id"              // the OVS system-id, from the node agent
	NodeMgmtPortMAC   = "k8s.ovn.org/node-mgmt-port-mac-addresses" // {"default":"0a:58:0a:f4:01:02"}, from the agent
	NodePrimaryIfAddr = "k8s.ovn.org/node-primary-ifaddr"          // {"ipv4":"172.18.0.2/16","ipv6":""}, from the agent
	NodeAgentReady    = "k8s.ovn.org/node-agent-ready"             // NodeIsReady, from the agent
	// NodePhysicalNetworks is the networks outside that the node has bridges to: ["lan","storage"], from the agent.
	NodePhysicalNetworks = "k8s.ovn.org/node-physical-networks"
)

// NodeIsReady is the value of a node-agent-ready annotation: the agent has set up the node since the Node was made.
const NodeIsReady = "true"

// defaultNetwork is the key of the cluster's own network inside annotations.
const defaultNetwork = string(names.Own)

// nodeSubnetsExample is a node-subnets annotation, for errors.
const nodeSubnetsExample = `{"default":["10.244.1.0/24","fd01:0:0:1::/64"]}`

// ParseNodeSubnets reads the entry of the cluster's own network, which must be there. For the rest see NodeSubnetsIn.
func ParseNodeSubnets(value string) ([]netip.Prefix, error) {
	ps, ok, err := NodeSubnetsIn(value, names.Own)
	return ps, ownEntry(NodeSubnets, value, nodeSubnetsExample, ok, err)
}

// NodeSubnetsIn reads the entry of a network in a node-subnets annotation, also in the older form with a bare string,
// {"default":"10.244.1.0/24"}. It returns at most one subnet per family, IPv4 first; ok is false when there is no
// entry. An error quotes the value, cut if it is long, and says what would be right.
func NodeSubnetsIn(value string, network names.Network) (ps []netip.Prefix, ok bool, err error) {
	return readSubnets(value).In(network)
}

// subnetEntries is the entries of a node-subnets annotation.
type subnetEntries struct{ nodeEntries }

func readSubnets(value string) subnetEntries {
	return subnetEntries{readEntries(value, nodeSubnetsExample)}
}

// In is NodeSubnetsIn.
func (e subnetEntries) In(network names.Network) (ps []netip.Prefix, ok bool, err error) {
	var list subnetList
	if ok, err = e.entry(network, &list); ok {
		ps, err = subnets(list)
	}
	if err != nil {
		return nil, false, refused(NodeSubnets, e.value, err)
	}
	return ps, ok, nil
}

// NodeRead is annotations of Nodes that were read before, by their values: they are long where there are many networks.
type NodeRead struct {
	subnets map[string]subnetEntries
	joins   map[string]GatewayJoins
}

// NewNodeRead is a NodeRead that has read nothing.
func NewNodeRead() NodeRead { return NodeRead{map[string]subnetEntries{}, map[string]GatewayJoins{}} }

// Subnets is NodeSubnetsIn.
func (r NodeRead) Subnets(value string, network names.Network) (ps []netip.Prefix, ok bool, err error) {
	return once(r.subnets, value, readSubnets).In(network)
}

// Joins is ReadGatewayJoins.
func (r NodeRead) Joins(value string) GatewayJoins { return once(r.joins, value, ReadGatewayJoins) }

// SubnetKeys lists the keys of the entries of a node-subnets annotation, in no order.
func (r NodeRead) SubnetKeys(value string) iter.Seq[names.Network] {
	return once(r.subnets, value, readSubnets).keys()
}

// JoinKeys is SubnetKeys of a node-gateway-router-lrp-ifaddrs annotation.
func (r NodeRead) JoinKeys(value string) iter.Seq[names.Network] { return r.Joins(value).keys() }

// once reads a value that is not among those that were read.
func once[T any](before map[string]T, value string, read func(string) T) T {
	out, known := before[value]
	if !known {
		out = read(value)
		before[value] = out
	}
	return out
}

// subnetList is a list of subnets, or a bare one.
type subnetList []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *subnetList) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*l = subnetList{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

func subnets(list []string) ([]netip.Prefix, error) {
	ps, err := prefixes(list)
	if err != nil {
		return nil, err
	}
	for _, p := range ps {
		if p != p.Masked() {
			return nil, fmt.Errorf("%s has host bits set, want %s", p, p.Masked())
		}
	}
	return ps, nil
}

// SetNodeSubnets is a node-subnets annotation with the entries of networks. One without subnets has no entry.
func SetNodeSubnets(value string, subnets map[names.Network][]netip.Prefix) string {
	return set(value, subnets, func(ps []netip.Prefix) any { return ps })
}

// MarshalNodeSubnets writes a node-subnets annotation that has only the cluster's own network; "" for no subnets.
func MarshalNodeSubnets(subnets []netip.Prefix) string {
	return SetNodeSubnets("", map[names.Network][]netip.Prefix{names.Own: subnets})
}

// ParseNodePhysicalNetworks reads a node-physical-networks annotation. The list is sorted, and not nil if it is empty.
func ParseNodePhysicalNetworks(value string) ([]string, error) {
	return parse(NodePhysicalNetworks, value, func(value string) ([]string, error) {
		list := []string{}
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return nil, malformed(err, nodePhysicalExample)
		}
		if list == nil {
			return nil, errors.New("null, want such as " + nodePhysicalExample)
		}
		slices.Sort(list)
		return slices.Compact(list), nil
	})
}

// nodePhysicalExample is a node-physical-networks annotation, for errors.
const nodePhysicalExample = `["lan","storage"]`

// MarshalNodePhysicalNetworks writes a node-physical-networks annotation.
func MarshalNodePhysicalNetworks(networks []string) string {
	list := append([]string{}, networks...)
	slices.Sort(list)
	return marshal(slices.Compact(list))
}

// MarshalNodeMgmtPortMAC writes a node-mgmt-port-mac-addresses annotation.
func MarshalNodeMgmtPortMAC(mac ipnet.MAC) string {
	return marshal(map[string]string{defaultNetwork: mac.String()})
}

// MarshalNodePrimaryIfAddr writes a node-primary-ifaddr annotation from the addresses, with prefix lengths, of the
// node's primary interface.
func MarshalNodePrimaryIfAddr(addrs []netip.Prefix) string { return marshal(addrPair(addrs)) }

// addrPairJSON is the wire form of at most one address of each family.
type addrPairJSON struct {
	IPv4 string `json:"ipv4"`
	IPv6 string `json:"ipv6"`
}

func addrPair(addrs []netip.Prefix) (out addrPairJSON) {
	for _, p := range addrs {
		if p.Addr().Is4() {
			out.IPv4 = p.String()
		} else {
			out.IPv6 = p.String()
		}
	}
	return out
}

// prefixes parses a list with at most one prefix per family, IPv4 first.
func prefixes(list []string) ([]netip.Prefix, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("the list is empty, want one CIDR per address family")
	}
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR such as 10.244.1.0/24", s)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is an IPv4-mapped IPv6 address, want plain IPv4", s)
		}
		for _, other := range out {
			if other.Addr().Is4() == p.Addr().Is4() {
				return nil, fmt.Errorf("%s and %s are of the same address family, want at most one each", other, p)
			}
		}
		out = append(out, p)
	}
	ipnet.Sort(out)
	return out, nil
}

// marshal is json.Marshal for strings, addresses and structs of them, which cannot fail.
func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// briefMax limits how many bytes of a value an error quotes: an annotation may have 256 KiB, and a Kubernetes Event
// only 1 KiB.
const briefMax = 300

// brief cuts a value to what an error quotes.
func brief(value string) string {
	if len(value) <= briefMax {
		return value
	}
	return value[:briefMax] + "..."
}

// noNetwork is the error for an annotation without an entry for the cluster's pod network.
func noNetwork(example string) error {
	return fmt.Errorf("no entry for network %q, want one such as %s", defaultNetwork, example)
}

// maxSize is how many bytes of an annotation are parsed that users may write. The API allows 256 KiB for all
// annotations of an object. So much is parsed of those that have an entry for each network that a node is in.
const (
	maxSize     = 16 << 10
	maxNodeSize = 256 << 10
)

// checkSize is why an annotation is too long.
func checkSize(value string, limit int) error {
	if len(value) <= limit {
		return nil
	}
	return fmt.Errorf("the value is too long, want at most %d bytes", limit)
}

// parse reads an annotation.
func parse[T any](key, value string, read func(value string) (T, error)) (out T, err error) {
	if err := checkSize(value, maxSize); err != nil {
		return out, refused(key, value, err)
	}
	v, err := read(value)
	if err != nil {
		return out, refused(key, value, err)
	}
	return v, nil
}

// refused is the error for an annotation that cannot be used.
func refused(key, value string, why error) error {
	return fmt.Errorf("parsing %s %q: %s", key, brief(value), strings.ToValidUTF8(brief(why.Error()), ""))
}

// malformed is the error for a value that is no JSON or does not have the form of example.
func malformed(err error, example string) error {
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) {
		return fmt.Errorf("JSON of another form (%s out of place), want such as %s", form.Value, example)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON, want such as %s", example)
	}
	return err // from parsing an address: it describes itself
}
