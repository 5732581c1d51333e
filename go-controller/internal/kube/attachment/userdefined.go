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
	layer2 = "Layer2"
	layer3 = "Layer3"
)

// mostFamilies is how many ranges a network has at most, one for each address family.
const mostFamilies = 2

// UserDefined reads the spec of a UserDefinedNetwork. The error names the field, its value, and what would be right.
func UserDefined(name cluster.Name, spec []byte) (*cluster.Network, error) {
	var s userSpec
	unknown, err := kjson.UnmarshalStrict(spec, &s)
	if err != nil {
		return nil, fmt.Errorf("reading spec: %w", err)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("spec: %w: it is not served, want a spec without it", unknown[0])
	}
	n := &cluster.Network{Name: names.Defined(name.Namespace, name.Name), UserDefined: true}
	if !n.Name.Valid() {
		return nil, errors.New("metadata.name: it has more than 252 characters together with the namespace, want fewer")
	}
	c, field, err := s.conf()
	if err != nil {
		return nil, err
	}
	n.MTU = c.MTU
	for _, check := range []func(*cluster.Network, cluster.Name) error{c.topology, c.subnets, c.mtu, c.primary} {
		if err := check(n, name); err != nil {
			return nil, fmt.Errorf("spec.%s: %w", field, err)
		}
	}
	return n, nil
}

// conf is the spec as a configuration of this project's plugin, and the field of the topology.
func (s userSpec) conf() (c netConf, field string, err error) {
	switch {
	case s.Topology == layer2 && s.Layer2 != nil && s.Layer3 == nil:
		c, err = s.Layer2.conf()
	case s.Topology == layer3 && s.Layer3 != nil && s.Layer2 == nil:
		c, err = s.Layer3.conf()
	case s.Topology == layer2 || s.Topology == layer3:
		return c, "", fmt.Errorf("spec: topology is %s, want the field %s, and no other topology's", s.Topology,
			strings.ToLower(s.Topology))
	default:
		return c, "", fmt.Errorf("spec.topology: %.64q, want Layer2 or Layer3", s.Topology)
	}
	field = strings.ToLower(s.Topology)
	if err != nil {
		return c, field, fmt.Errorf("spec.%s.%w", field, err)
	}
	c.Topology = field
	return c, field, nil
}

func (s layer2Spec) conf() (c netConf, err error) {
	if c.Role, c.JoinSubnet, err = s.primarySpec.conf(s.Role); err != nil {
		return c, err
	}
	mode, err := s.IPAM.mode()
	switch {
	case err != nil:
		return c, err
	case mode == enabled && len(s.Subnets) == 0:
		return c, errors.New("subnets: none, want one for each address family, or ipam.mode Disabled")
	case mode == disabled && len(s.Subnets) > 0:
		return c, errors.New("subnets: want none where ipam.mode is Disabled")
	}
	for _, r := range s.Subnets {
		if err := oneRange(r); err != nil {
			return c, err
		}
	}
	c.MTU, c.Subnets = s.MTU, strings.Join(s.Subnets, ",")
	return c, nil
}

// conf is the role, and the join subnets of a primary network, as a configuration has them.
func (s primarySpec) conf(role string) (as, join string, err error) {
	fields := []struct {
		name  string
		value json.RawMessage
	}{{"reservedSubnets", s.ReservedSubnets}, {"infrastructureSubnets", s.InfrastructureSubnets},
		{"defaultGatewayIPs", s.DefaultGatewayIPs}, {"joinSubnets", s.JoinSubnets}}
	why := "only a network of role Primary has it"
	switch role {
	case "Secondary":
	case "Primary":
		fields, why = fields[:3], "it is not served by this version"
	default:
		return "", "", fmt.Errorf("role: %.64q, want Primary or Secondary", role)
	}
	for _, f := range fields {
		if len(f.value) > 0 {
			return "", "", fmt.Errorf("%s: %s, want none", f.name, why)
		}
	}
	if role == "Secondary" || len(s.JoinSubnets) == 0 {
		return strings.ToLower(role), "", nil
	}
	var list []string
	if err := json.Unmarshal(s.JoinSubnets, &list); err != nil {
		return "", "", fmt.Errorf("joinSubnets: want a list of ranges: %w", err)
	}
	for _, r := range list {
		if err := oneRange(r); err != nil {
			return "", "", fmt.Errorf("joinSubnets: %w", err)
		}
	}
	return "primary", strings.Join(list, ","), nil
}

// oneRange is the error that a text is not a range: a configuration has several of them in one text.
func oneRange(s string) error {
	if _, err := netip.ParsePrefix(s); err != nil {
		return fmt.Errorf("subnets: %.64q, want a range such as 10.99.0.0/24", s)
	}
	return nil
}

func (s layer3Spec) conf() (c netConf, err error) {
	if c.Role, c.JoinSubnet, err = (primarySpec{JoinSubnets: s.JoinSubnets}).conf(s.Role); err != nil {
		return c, err
	}
	if len(s.Subnets) == 0 || len(s.Subnets) > mostFamilies {
		return c, fmt.Errorf("subnets: %d, want one for each address family", len(s.Subnets))
	}
	ranges := make([]string, len(s.Subnets))
	for i, r := range s.Subnets {
		if err := oneRange(r.CIDR); err != nil {
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

// mode is the mode of IPAM; Enabled when there is none.
func (s *ipamSpec) mode() (string, error) {
	switch {
	case s == nil:
		return enabled, nil
	case s.Lifecycle != "":
		return "", fmt.Errorf("ipam.lifecycle: %.64q is not served by this version: want none; an address is kept by "+
			"asking for it in the pod's annotation", s.Lifecycle)
	case s.Mode == "":
		return enabled, nil
	case s.Mode != enabled && s.Mode != disabled:
		return "", fmt.Errorf("ipam.mode: %.64q, want Enabled or Disabled", s.Mode)
	}
	return s.Mode, nil
}
