package attachment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// netConf is such a configuration.
type netConf struct {
	CNIVersion          string          `json:"cniVersion"`
	Name                string          `json:"name"`
	Type                string          `json:"type"`
	NetAttachDefName    string          `json:"netAttachDefName"`
	Topology            string          `json:"topology"`
	Role                string          `json:"role"`
	Subnets             string          `json:"subnets"`
	ExcludeSubnets      string          `json:"excludeSubnets"`
	MTU                 int             `json:"mtu"`
	PhysicalNetworkName string          `json:"physicalNetworkName"`
	VLAN                int             `json:"vlanID"`
	IPAM                json.RawMessage `json:"ipam"`
	JoinSubnet          string          `json:"joinSubnet"`

	ReservedSubnets       string `json:"reservedSubnets"`
	InfrastructureSubnets string `json:"infrastructureSubnets"`
	DefaultGatewayIPs     string `json:"defaultGatewayIPs"`
	AllowPersistentIPs    bool   `json:"allowPersistentIPs"`
}

// Definition reads the configuration of a NetworkAttachmentDefinition. The network is nil, without an error, for one of
// another plugin. The error names the field of the configuration, its value, and what would be right.
func Definition(name cluster.Name, conf string) (*cluster.Network, error) {
	if ours, err := isOurs(conf); !ours {
		return nil, err
	}
	var c netConf
	unknown, err := kjson.UnmarshalStrict([]byte(conf), &c)
	if err != nil {
		return nil, fmt.Errorf("reading spec.config: %w", err)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("spec.config: %w: it is not served, want a configuration without it", unknown[0])
	}
	n := &cluster.Network{Name: names.Defined(name.Namespace, name.Name), MTU: c.MTU}
	for _, check := range []func(*cluster.Network, cluster.Name) error{
		c.identity, c.topology, c.subnets, c.excluded, c.mtu, c.physical, c.primary, c.persistent,
	} {
		if err := check(n, name); err != nil {
			return nil, fmt.Errorf("spec.config: %w", err)
		}
	}
	return n, nil
}

// isOurs is true for a configuration of this project's plugin. One that has several plugins, or is read from a file of
// the node, is another's.
func isOurs(conf string) (bool, error) {
	if strings.TrimSpace(conf) == "" {
		return false, nil
	}
	var c struct {
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(conf), &c); err != nil {
		return false, fmt.Errorf("reading spec.config: %w", err)
	}
	for _, p := range c.Plugins {
		if p.Type == names.OverlayPlugin {
			return false, fmt.Errorf("spec.config: plugins has type %s, want it as the only plugin, without a list",
				names.OverlayPlugin)
		}
	}
	return c.Type == names.OverlayPlugin, nil
}

func (c netConf) identity(n *cluster.Network, name cluster.Name) error {
	if !n.Name.Valid() {
		return errors.New("the definition's namespace and name have more than 252 characters together, want fewer")
	}
	if c.Name == "" || len(c.Name) > 128 {
		return errors.New("name: want the name of the network, of 128 characters at most")
	}
	if c.NetAttachDefName != "" && c.NetAttachDefName != name.String() {
		return fmt.Errorf("netAttachDefName: %.64q, want %q, or nothing", c.NetAttachDefName, name)
	}
	if ipam := bytes.TrimSpace(c.IPAM); len(ipam) > 0 && !bytes.Equal(ipam, []byte("{}")) &&
		!bytes.Equal(ipam, []byte("null")) {
		return errors.New("ipam: no such plugin is called: want subnets instead")
	}
	switch c.Role {
	case "", "secondary", "primary":
		return nil
	}
	return fmt.Errorf("role: %.64q, want primary or secondary", c.Role)
}

func (c netConf) topology(n *cluster.Network, _ cluster.Name) error {
	for _, t := range []cluster.Topology{cluster.Layer3, cluster.Layer2, cluster.Localnet} {
		if c.Topology == t.String() {
			n.Topology = t
			return nil
		}
	}
	return fmt.Errorf("topology: %.64q, want layer3, layer2 or localnet", c.Topology)
}

// mostSubnets is how many ranges a network may have: each is a route of each pod, and a row.
const mostSubnets = 4

func (c netConf) subnets(n *cluster.Network, _ cluster.Name) (err error) {
	if strings.Count(c.Subnets, ",") >= mostSubnets {
		return fmt.Errorf("subnets: %d ranges, want at most %d", strings.Count(c.Subnets, ",")+1, mostSubnets)
	}
	if n.Topology != cluster.Layer3 {
		return c.sharedSubnets(n)
	}
	if n.Subnets, err = config.ParseClusterSubnets(c.Subnets); err != nil {
		return fmt.Errorf("subnets: %w", err)
	}
	for _, s := range n.Subnets {
		if err := forHosts(s.CIDR); err != nil {
			return err
		}
	}
	return disjoint(n.Subnets)
}

// sharedSubnets reads the subnets of a network of one switch: at most one of each family, or none.
func (c netConf) sharedSubnets(n *cluster.Network) error {
	subnets, err := config.ParsePrefixes("subnets", c.Subnets)
	if err != nil {
		return err
	}
	ipnet.Sort(subnets)
	for i, p := range subnets {
		if err := forHosts(p); err != nil {
			return err
		}
		if p.Addr().BitLen()-p.Bits() < 2 {
			return fmt.Errorf("subnets: %s has no room for pods, want a wider one", p)
		}
		if i > 0 && subnets[i-1].Addr().Is4() == p.Addr().Is4() {
			return fmt.Errorf("subnets: %s and %s are of one address family, want one of each at most", subnets[i-1], p)
		}
		n.Subnets = append(n.Subnets, config.ClusterSubnet{CIDR: p})
	}
	return nil
}

// forHosts is the error that a range is not one of addresses that hosts have.
func forHosts(p netip.Prefix) error {
	if p.Bits() == 0 || !p.Addr().IsGlobalUnicast() {
		return fmt.Errorf("subnets: %s: want a range of addresses that hosts have", p)
	}
	return nil
}

func disjoint(subnets []config.ClusterSubnet) error {
	for i, a := range subnets {
		for _, b := range subnets[:i] {
			if a.CIDR.Overlaps(b.CIDR) {
				return fmt.Errorf("subnets: %s and %s overlap, want disjoint ones", b.CIDR, a.CIDR)
			}
		}
	}
	return nil
}

// joinSubnets is the subnets of the switch between a primary network's router and the exits of nodes, unless the
// definition names others. Each network has its own switch, so that all may have the same.
const joinSubnets = "100.66.0.0/15,fd66::/64"

// primary reads what only a primary network has.
func (c netConf) primary(n *cluster.Network, _ cluster.Name) error {
	if c.Role != "primary" {
		if c.JoinSubnet != "" {
			return errors.New("joinSubnet: only a network of role primary has one, want none")
		}
		return nil
	}
	n.Primary = true
	switch {
	case n.Topology == cluster.Localnet:
		return errors.New("role: a localnet network is not a primary one, want topology layer2 or layer3")
	case len(n.Subnets) == 0:
		return errors.New("subnets: none, want one of each address family that the cluster's own pods have")
	}
	join, err := config.ParsePrefixes("joinSubnet", cmp.Or(c.JoinSubnet, joinSubnets))
	if err != nil {
		return err
	}
	return n.SetJoin(join)
}

// persistent reads whether IPAMClaims keep addresses in the network.
func (c netConf) persistent(n *cluster.Network, _ cluster.Name) error {
	if !c.AllowPersistentIPs {
		return nil
	}
	switch {
	case n.Topology == cluster.Layer3:
		return errors.New("allowPersistentIPs: in a layer3 network an address belongs to a node, want layer2 or localnet")
	case len(n.Subnets) == 0:
		return errors.New("allowPersistentIPs: the network has no subnets, want some")
	}
	n.Persistent = true
	return nil
}

func (c netConf) mtu(n *cluster.Network, _ cluster.Name) error {
	least := annotation.MinMTU
	for _, s := range n.Subnets {
		if s.CIDR.Addr().Is6() {
			least = annotation.MinMTUIPv6
		}
	}
	if c.MTU != 0 && (c.MTU < least || c.MTU > annotation.MaxMTU) {
		return fmt.Errorf("mtu: %d, want %d to %d bytes", c.MTU, least, annotation.MaxMTU)
	}
	return nil
}

func (c netConf) physical(n *cluster.Network, _ cluster.Name) error {
	if n.Topology != cluster.Localnet {
		if c.PhysicalNetworkName != "" || c.VLAN != 0 {
			return errors.New("physicalNetworkName, vlanID: want topology localnet, or neither")
		}
		return nil
	}
	n.Physical = cluster.Physical{Name: c.PhysicalNetworkName, VLAN: c.VLAN}
	if n.Physical.Name == "" {
		n.Physical.Name = c.Name
	}
	if strings.ContainsAny(n.Physical.Name, ":, \t\n") || len(n.Physical.Name) > 128 {
		return fmt.Errorf("physicalNetworkName: %.64q, want a name without colons, commas and spaces", n.Physical.Name)
	}
	if c.VLAN < 0 || c.VLAN > config.LastVLAN {
		return fmt.Errorf("vlanID: %d, want 1 to %d, or 0 for none", c.VLAN, config.LastVLAN)
	}
	return nil
}
