package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Keys of Node annotations.
const (
	NodeSubnets       = "k8s.ovn.org/node-subnets"                 // {"default":["10.244.1.0/24"]}, written by the master
	NodeChassisID     = "k8s.ovn.org/node-chassis-id"              // the OVS system-id, written by the node agent
	NodeMgmtPortMAC   = "k8s.ovn.org/node-mgmt-port-mac-addresses" // {"default":"0a:58:0a:f4:01:02"}, written by the node agent
	NodePrimaryIfAddr = "k8s.ovn.org/node-primary-ifaddr"          // {"ipv4":"172.18.0.2/16","ipv6":""}, written by the node agent
)

// defaultNetwork is the name of the cluster's pod network inside annotations.
const defaultNetwork = "default"

// nodeSubnetsExample is what a node-subnets annotation looks like.
const nodeSubnetsExample = `{"default":["10.244.1.0/24","fd01:0:0:1::/64"]}`

// ParseNodeSubnets reads a node-subnets annotation. It returns at most one
// subnet per family, IPv4 first. The older form with a bare string,
// {"default":"10.244.1.0/24"}, is read too. An error quotes the value and says
// what would be right, and is short whatever the value.
func ParseNodeSubnets(value string) ([]netip.Prefix, error) {
	ps, err := parseNodeSubnets(value)
	if err != nil {
		return nil, refused(NodeSubnets, value, err)
	}
	return ps, nil
}

func parseNodeSubnets(value string) ([]netip.Prefix, error) {
	var nets map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &nets); err != nil {
		return nil, malformed(err, nodeSubnetsExample)
	}
	raw, ok := nets[defaultNetwork]
	if !ok {
		return nil, fmt.Errorf("no entry for network %q, want one such as %s", defaultNetwork, nodeSubnetsExample)
	}
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, malformed(err, nodeSubnetsExample)
	}
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

// MarshalNodeSubnets writes a node-subnets annotation.
func MarshalNodeSubnets(subnets []netip.Prefix) string {
	return marshal(map[string][]netip.Prefix{defaultNetwork: subnets})
}

// MarshalNodeMgmtPortMAC writes a node-mgmt-port-mac-addresses annotation.
func MarshalNodeMgmtPortMAC(mac ipnet.MAC) string {
	return marshal(map[string]string{defaultNetwork: mac.String()})
}

// MarshalNodePrimaryIfAddr writes a node-primary-ifaddr annotation from the
// addresses, with prefix lengths, of the node's primary interface.
func MarshalNodePrimaryIfAddr(addrs []netip.Prefix) string {
	var v struct {
		IPv4 string `json:"ipv4"`
		IPv6 string `json:"ipv6"`
	}
	for _, p := range addrs {
		if p.Addr().Is4() {
			v.IPv4 = p.String()
		} else {
			v.IPv6 = p.String()
		}
	}
	return marshal(v)
}

// prefixes parses a list with at most one prefix per family, IPv4 first.
func prefixes(list []string) ([]netip.Prefix, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("the list is empty, want one CIDR per address family")
	}
	var out []netip.Prefix
	seen := map[bool]netip.Prefix{}
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR such as 10.244.1.0/24", s)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is an IPv4-mapped IPv6 address, want plain IPv4", s)
		}
		if other, dup := seen[p.Addr().Is4()]; dup {
			return nil, fmt.Errorf("%s and %s are of the same address family, want at most one each", other, p)
		}
		seen[p.Addr().Is4()] = p
		out = append(out, p)
	}
	ipnet.Sort(out)
	return out, nil
}

// marshal is json.Marshal for values that can't fail: strings, addresses and
// structs of them.
func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// briefMax is how much of a value an error quotes: an annotation may be 256 KiB
// long, a Kubernetes Event has room for 1 KiB.
const briefMax = 300

// brief is the beginning of a value, to be quoted in an error.
func brief(value string) string {
	if len(value) <= briefMax {
		return value
	}
	return value[:briefMax] + "..."
}

// refused is the error for an annotation: its key, its value, and why.
func refused(key, value string, why error) error {
	return fmt.Errorf("parsing %s %q: %s", key, brief(value), strings.ToValidUTF8(brief(why.Error()), ""))
}

// malformed is the error for a value that is not JSON, or JSON of another form.
func malformed(err error, example string) error {
	var form *json.UnmarshalTypeError
	if errors.As(err, &form) {
		return fmt.Errorf("JSON of another form (%s out of place), want such as %s", form.Value, example)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON, want such as %s", example)
	}
	return err // of an address, which says what is wrong with it
}
