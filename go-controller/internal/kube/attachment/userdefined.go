package attachment

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// userSpec is the spec of a UserDefinedNetwork.
type userSpec struct {
	Topology string      `json:"topology"`
	Layer2   *layer2Spec `json:"layer2"`
	Layer3   *layer3Spec `json:"layer3"`
}

// layer2Spec is a network of one switch for the pods of all nodes.
type layer2Spec struct {
	Role    string    `json:"role"`
	MTU     int       `json:"mtu"`
	Subnets []string  `json:"subnets"`
	IPAM    *ipamSpec `json:"ipam"`
	primarySpec
}

// layer3Spec is a network with a switch and a subnet for each node.
type layer3Spec struct {
	Role        string          `json:"role"`
	MTU         int             `json:"mtu"`
	Subnets     []layer3Subnet  `json:"subnets"`
	JoinSubnets json.RawMessage `json:"joinSubnets"`
	IPAM        *ipamSpec       `json:"ipam"`
}

type layer3Subnet struct {
	CIDR       string `json:"cidr"`
	HostSubnet *int   `json:"hostSubnet"`
}

type ipamSpec struct {
	Mode      string `json:"mode"`
	Lifecycle string `json:"lifecycle"`
}

// primarySpec is the fields that the API allows for the role Primary alone.
type primarySpec struct {
	JoinSubnets           json.RawMessage `json:"joinSubnets"`
	ReservedSubnets       json.RawMessage `json:"reservedSubnets"`
	InfrastructureSubnets json.RawMessage `json:"infrastructureSubnets"`
	DefaultGatewayIPs     json.RawMessage `json:"defaultGatewayIPs"`
}

// The topologies, as the API has them.
const (
	layer2   = "Layer2"
	layer3   = "Layer3"
	localnet = "Localnet"
)

// mostFamilies is how many ranges a network has at most, one for each address family.
const mostFamilies = 2

// UserDefined reads the spec of a UserDefinedNetwork. The error names the field, its value, and what would be right.
func UserDefined(name cluster.Name, spec []byte) (*cluster.Network, error) {
	var s userSpec
	if err := strictly(spec, &s); err != nil {
		return nil, err
	}
	n := &cluster.Network{Name: names.Defined(name.Namespace, name.Name), UserDefined: true}
	if !n.Name.Valid() {
		return nil, errors.New("metadata.name: it has more than 252 characters together with the namespace, want fewer")
	}
	if s.Topology == localnet {
		return nil, fmt.Errorf("spec.topology: %q, want Layer2 or Layer3, or a ClusterUserDefinedNetwork", s.Topology)
	}
	if err := s.into(n, "spec", nil); err != nil {
		return nil, err
	}
	return n, nil
}

// strictly reads a spec that has no fields but known ones.
func strictly(spec []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(spec, into)
	if err != nil {
		return fmt.Errorf("reading spec: %w", err)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("spec: %w: it is not served, want a spec without it", unknown[0])
	}
	return nil
}

// into says of a network what the spec says of it, which stands in the field at. l is what it says of the topology
// Localnet.
func (s userSpec) into(n *cluster.Network, at string, l *localnetSpec) error {
	c, field, err := s.conf(l)
	switch {
	case err != nil && field == "":
		return fmt.Errorf("%s%w", at, err)
	case err != nil:
		return fmt.Errorf("%s.%s.%w", at, field, err)
	}
	c.Topology, n.MTU = field, c.MTU
	for _, check := range []func(*cluster.Network, cluster.Name) error{
		c.topology, c.subnets, c.excluded, c.mtu, c.physical, c.primary, c.persistent,
	} {
		if err := check(n, cluster.Name{}); err != nil {
			return fmt.Errorf("%s.%s: %w", at, field, err)
		}
	}
	return nil
}

// conf is the spec as a configuration of this project's plugin, and the field of the topology.
func (s userSpec) conf(l *localnetSpec) (c netConf, field string, err error) {
	switch {
	case s.Topology == layer2 && s.Layer2 != nil && s.Layer3 == nil && l == nil:
		c, err = s.Layer2.conf()
	case s.Topology == layer3 && s.Layer3 != nil && s.Layer2 == nil && l == nil:
		c, err = s.Layer3.conf()
	case s.Topology == localnet && l != nil && s.Layer2 == nil && s.Layer3 == nil:
		c, err = l.conf()
	case s.Topology == layer2 || s.Topology == layer3 || s.Topology == localnet:
		return c, "", fmt.Errorf(": topology is %s, want the field %s, and no other topology's", s.Topology,
			strings.ToLower(s.Topology))
	default:
		return c, "", fmt.Errorf(".topology: %.64q, want Layer2, Layer3, or Localnet for the whole cluster", s.Topology)
	}
	return c, strings.ToLower(s.Topology), err
}

func (s layer2Spec) conf() (c netConf, err error) {
	if err = s.into(&c, s.Role); err != nil {
		return c, err
	}
	c.MTU = s.MTU
	c.Subnets, err = s.IPAM.ranges(s.Subnets)
	c.AllowPersistentIPs = s.IPAM.persistent()
	return c, err
}

// ranges is the subnets of a network of one switch, as a configuration has them.
func (s *ipamSpec) ranges(subnets []string) (string, error) {
	mode, err := s.mode()
	switch {
	case err != nil:
		return "", err
	case mode == enabled && len(subnets) == 0:
		return "", errors.New("subnets: none, want one for each address family, or ipam.mode Disabled")
	case mode == disabled && len(subnets) > 0:
		return "", errors.New("subnets: want none where ipam.mode is Disabled")
	}
	return listed("subnets", subnets)
}

// listed is the ranges in a field as one text.
func listed(field string, ranges []string) (string, error) {
	for _, r := range ranges {
		if err := oneRange(field, r); err != nil {
			return "", err
		}
	}
	return strings.Join(ranges, ","), nil
}

// into says in a configuration what the fields say of a network with this role.
func (s primarySpec) into(c *netConf, role string) error {
	if role != "Primary" && role != secondary {
		return fmt.Errorf("role: %.64q, want Primary or Secondary", role)
	}
	c.Role = strings.ToLower(role)
	for _, f := range []struct {
		name  string
		value json.RawMessage
		into  *string
		check func(field, text string) error
	}{
		{"infrastructureSubnets", s.InfrastructureSubnets, &c.InfrastructureSubnets, oneRange},
		{"defaultGatewayIPs", s.DefaultGatewayIPs, &c.DefaultGatewayIPs, oneAddress},
		{"reservedSubnets", s.ReservedSubnets, &c.ReservedSubnets, oneRange},
		{"joinSubnets", s.JoinSubnets, &c.JoinSubnet, oneRange},
	} {
		if len(f.value) == 0 {
			continue
		}
		if role != "Primary" {
			return fmt.Errorf("%s: only a network of role Primary has it, want none", f.name)
		}
		var list []string
		if err := json.Unmarshal(f.value, &list); err != nil {
			return fmt.Errorf("%s: want a list of texts: %w", f.name, err)
		}
		for _, text := range list {
			if err := f.check(f.name, text); err != nil {
				return err
			}
		}
		*f.into = strings.Join(list, ",")
	}
	return nil
}

// oneRange is the error that a text is not a range: a configuration has several of them in one text.
func oneRange(field, s string) error {
	if _, err := netip.ParsePrefix(s); err != nil {
		return fmt.Errorf("%s: %.64q, want a range such as 10.99.0.0/24", field, s)
	}
	return nil
}

func (s layer3Spec) conf() (c netConf, err error) {
	if err = (primarySpec{JoinSubnets: s.JoinSubnets}).into(&c, s.Role); err != nil {
		return c, err
	}
	if s.IPAM != nil {
		return c, errors.New("ipam: in a Layer3 network an address belongs to a node, want Layer2 or Localnet, or no ipam")
	}
	if len(s.Subnets) == 0 || len(s.Subnets) > mostFamilies {
		return c, fmt.Errorf("subnets: %d, want one for each address family", len(s.Subnets))
	}
	ranges := make([]string, len(s.Subnets))
	for i, r := range s.Subnets {
		if err := oneRange("subnets", r.CIDR); err != nil {
			return c, err
		}
		if i > 0 && strings.Contains(ranges[0], ":") == strings.Contains(r.CIDR, ":") {
			return c, fmt.Errorf("subnets: %s and %s are of one address family, want one of each", s.Subnets[0].CIDR, r.CIDR)
		}
		ranges[i] = r.CIDR
		if r.HostSubnet != nil {
			ranges[i] += fmt.Sprintf("/%d", *r.HostSubnet)
		}
	}
	c.MTU, c.Subnets = s.MTU, strings.Join(ranges, ",")
	return c, nil
}

// The modes of IPAM.
const (
	enabled  = "Enabled"
	disabled = "Disabled"
)

// persistent is the lifecycle of addresses that IPAMClaims keep.
const persistent = "Persistent"

func (s *ipamSpec) persistent() bool { return s != nil && s.Lifecycle == persistent }

// mode is the mode of IPAM; Enabled when there is none.
func (s *ipamSpec) mode() (string, error) {
	switch {
	case s == nil:
		return enabled, nil
	case s.Lifecycle != "" && s.Lifecycle != persistent:
		return "", fmt.Errorf("ipam.lifecycle: %.64q, want Persistent, or none", s.Lifecycle)
	case s.Lifecycle != "" && s.Mode == disabled:
		return "", errors.New("ipam.lifecycle: want none where ipam.mode is Disabled")
	case s.Mode == "":
		return enabled, nil
	case s.Mode != enabled && s.Mode != disabled:
		return "", fmt.Errorf("ipam.mode: %.64q, want Enabled or Disabled", s.Mode)
	}
	return s.Mode, nil
}
