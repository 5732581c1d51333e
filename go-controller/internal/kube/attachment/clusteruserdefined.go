package attachment

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// clusterSpec is the spec of a ClusterUserDefinedNetwork.
type clusterSpec struct {
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	Network           struct {
		userSpec
		Localnet *localnetSpec `json:"localnet"`
	} `json:"network"`
}

// secondary is the role of a network that pods have further interfaces in.
const secondary = "Secondary"

// localnetSpec is a network of one switch that is joined to a network outside.
type localnetSpec struct {
	Role                string    `json:"role"`
	PhysicalNetworkName string    `json:"physicalNetworkName"`
	MTU                 int       `json:"mtu"`
	Subnets             []string  `json:"subnets"`
	ExcludeSubnets      []string  `json:"excludeSubnets"`
	IPAM                *ipamSpec `json:"ipam"`
	VLAN                *vlanSpec `json:"vlan"`
}

type vlanSpec struct {
	Mode   string `json:"mode"`
	Access *struct {
		ID int `json:"id"`
	} `json:"access"`
}

// mostOfName is how long the name of a ClusterUserDefinedNetwork may be: with each namespace's name before it, it is
// the name of a network to pods and nodes.
const mostOfName = 252 - 63

// ClusterUserDefined reads the spec of a ClusterUserDefinedNetwork. The selector is there unless nothing can be read.
// The error names the field, its value, and what would be right.
func ClusterUserDefined(name string, spec []byte) (*cluster.Network, *metav1.LabelSelector, error) {
	var s clusterSpec
	if err := strictly(spec, &s); err != nil {
		return nil, s.NamespaceSelector, err
	}
	n := &cluster.Network{Name: names.Defined("", name), UserDefined: true}
	switch {
	case len(name) > mostOfName:
		return nil, s.NamespaceSelector, fmt.Errorf("metadata.name: want %d characters at most", mostOfName)
	case s.NamespaceSelector == nil:
		return nil, nil, errors.New("spec.namespaceSelector: none, want {} for all namespaces, or labels of some")
	}
	if err := s.Network.into(n, "spec.network", s.Network.Localnet); err != nil {
		return nil, s.NamespaceSelector, err
	}
	return n, s.NamespaceSelector, nil
}

func (s localnetSpec) conf() (c netConf, err error) {
	if s.Role != secondary {
		return c, fmt.Errorf("role: %.64q, want %s", s.Role, secondary)
	}
	if s.PhysicalNetworkName == "" {
		return c, errors.New("physicalNetworkName: none, want the name of a network outside, as nodes map it to a bridge")
	}
	c = netConf{MTU: s.MTU, PhysicalNetworkName: s.PhysicalNetworkName}
	if c.Subnets, err = s.IPAM.ranges(s.Subnets); err != nil {
		return c, err
	}
	if c.ExcludeSubnets, err = listed("excludeSubnets", s.ExcludeSubnets); err != nil {
		return c, err
	}
	c.AllowPersistentIPs = s.IPAM.persistent()
	c.VLAN, err = s.VLAN.id()
	return c, err
}

// id is the tag of the network's frames; 0 for none.
func (s *vlanSpec) id() (int, error) {
	switch {
	case s == nil:
		return 0, nil
	case s.Mode != "Access" || s.Access == nil:
		return 0, fmt.Errorf("vlan: mode is %.64q, want Access, and access.id", s.Mode)
	case s.Access.ID < 1 || s.Access.ID > config.LastVLAN:
		return 0, fmt.Errorf("vlan.access.id: %d, want 1 to %d", s.Access.ID, config.LastVLAN)
	}
	return s.Access.ID, nil
}
