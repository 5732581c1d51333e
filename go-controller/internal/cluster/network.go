package cluster

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// Topology is how a network connects pods.
type Topology int

// The topologies.
const (
	Layer3   Topology = iota // a subnet and a switch for each node, joined by a distributed router
	Layer2                   // one switch for the pods of all nodes
	Localnet                 // the same, which is also joined to a network outside, through a bridge of each node
)

// String is how users write the topology.
func (t Topology) String() string { return [...]string{"layer3", "layer2", "localnet"}[t] }

// Network is a network of pods. Networks may have the same subnets.
type Network struct {
	Name     names.Network
	Topology Topology
	// Subnets is of what each node gets one per family; of other topologies than Layer3, what pods get addresses of. A
	// network of those may have none: its pods then have the addresses that they ask for.
	Subnets     []config.ClusterSubnet
	Excluded    []netip.Prefix // of Subnets: what no pod gets
	Reserved    []netip.Prefix // of Subnets: what only pods get that ask for it
	Routers     []netip.Addr   // of a primary network of one switch: addresses of its router, where not the first
	JoinSubnets []netip.Prefix // of the switch between its routers, IPv4 first; none for a network with one router
	MTU         int            // bytes, of the pods' interfaces; 0 for what the cluster's own network has
	Physical    Physical       // Localnet: the network outside
	// Hosts is true when nodes themselves are in the network: each has a management port. The commands that set up nodes
	// by hand find this network by the marks on its router.
	Hosts    bool
	Services bool // the Services of pods in no primary network are reachable from it
	// Primary is true for a network that has the default routes of its pods. They leave it by way of their node.
	Primary bool
	// UserDefined is true for the network of a UserDefinedNetwork or ClusterUserDefinedNetwork.
	UserDefined bool
	// Persistent is true for a network in which IPAMClaims keep addresses.
	Persistent bool
	// RouterUUID is the UUID of a distributed router that somebody else made and that is used instead of a new one; ""
	// for none.
	RouterUUID string
}

// Physical is a network outside that a Localnet network is joined to.
type Physical struct {
	Name string // as ovn-bridge-mappings of the nodes has it
	VLAN int    // the tag of its frames, 1 to 4094; 0 for none
}

// Equal is true when m says the same, apart from RouterUUID.
func (n *Network) Equal(m *Network) bool {
	return n.Name == m.Name && n.Topology == m.Topology && slices.Equal(n.Subnets, m.Subnets) &&
		slices.Equal(n.Excluded, m.Excluded) && slices.Equal(n.Reserved, m.Reserved) &&
		slices.Equal(n.Routers, m.Routers) &&
		slices.Equal(n.JoinSubnets, m.JoinSubnets) && n.MTU == m.MTU &&
		n.Physical == m.Physical && n.Hosts == m.Hosts && n.Services == m.Services && n.Primary == m.Primary &&
		n.UserDefined == m.UserDefined && n.Persistent == m.Persistent
}

// ownNetwork is the cluster's own network.
func ownNetwork(c config.Cluster) *Network {
	join := slices.DeleteFunc(slices.Clone(c.JoinSubnets), func(p netip.Prefix) bool {
		return p.Addr().Is4() && !c.HasIPv4() || p.Addr().Is6() && !c.HasIPv6()
	})
	ipnet.Sort(join)
	return &Network{Name: names.Own, Subnets: c.Subnets, JoinSubnets: join, Hosts: true, Services: true}
}

// Ranges lists the ranges of the network's pods.
func (n *Network) Ranges() (out []netip.Prefix) {
	for _, s := range n.Subnets {
		out = append(out, s.CIDR)
	}
	return out
}

// Router is the address of the network's router in the subnet of a node, or of all; ok is false where it has none.
func (n *Network) Router(s netip.Prefix) (a netip.Addr, ok bool) {
	if n.Topology != Layer3 && !n.Primary {
		return a, false
	}
	if i := slices.IndexFunc(n.Routers, s.Contains); i >= 0 {
		return n.Routers[i], true
	}
	return subnet.Router(s)
}

// SwitchRow is the UUID of the row of the switch that the network has for a node, in the table of logical switches.
func (n *Network) SwitchRow(table string, node *Node) string {
	if n.Topology == Layer3 {
		return names.NodeRow(table, n.Name.Owner(node.Name), names.RoleSwitch, node.UID)
	}
	return names.RowUUID(table, names.KindCluster, n.ClusterOwner(), names.RoleSwitch, "")
}

// Switches lists the UUIDs of the rows of all switches that the network has, sorted.
func (n *Network) Switches(s *State, table string) (out []string) {
	if n.Topology != Layer3 {
		return []string{n.SwitchRow(table, nil)}
	}
	for name := range s.In(n.Name).NodeSubnets {
		if node := s.Nodes[name]; node != nil {
			out = append(out, n.SwitchRow(table, node))
		}
	}
	slices.Sort(out)
	return out
}

// Balances is true when the network's switches have load balancers: those of a group of the network.
func (n *Network) Balances() bool { return n.Services || n.Primary }

// LBGroupRow is the UUID of the row of that group, in the table of load balancer groups.
func (n *Network) LBGroupRow(table string) string {
	return names.RowUUID(table, names.KindCluster, n.ClusterOwner(), names.RoleLBGroup, "")
}

// ExitsLBGroupRow is the same for the group of the exits of a primary network.
func (n *Network) ExitsLBGroupRow(table string) string {
	return names.RowUUID(table, names.KindCluster, n.ClusterOwner(), names.RoleExitsLBGroup, "")
}

// RouterRow is the UUID of the row of the network's distributed router in the table of logical routers.
func (n *Network) RouterRow(table string) string {
	return cmp.Or(n.RouterUUID,
		names.RowUUID(table, names.KindCluster, n.ClusterOwner(), names.RoleRouter, ""))
}

// Attachment is an interface of a pod in a network.
type Attachment struct {
	Network   names.Network
	As        names.Network // by what name the pod asks for the network, if that is another: see State.Resolve
	Interface string        // its name in the pod; "" for the interface that Kubernetes itself asks for
	Asked     Asked
}

// Asked is what a pod asks for instead of what would be granted; nothing where a field is not valid, or zero. An
// address with its full length is in whatever subnet the network has.
type Asked struct {
	IPv4, IPv6 netip.Prefix
	MAC        ipnet.MAC
	Claim      string // the IPAMClaim in the pod's namespace whose addresses these are to be; "" for none
	Unserved   string // why what the pod asks for is not served in a network of this cluster
}

// IPs lists the addresses that are asked for, IPv4 first.
func (a Asked) IPs() (out []netip.Prefix) {
	for _, p := range []netip.Prefix{a.IPv4, a.IPv6} {
		if p.IsValid() {
			out = append(out, p)
		}
	}
	return out
}

// Of is the address of a family that is asked for.
func (a Asked) Of(is4 bool) netip.Prefix {
	if is4 {
		return a.IPv4
	}
	return a.IPv6
}

// Name is by what name the pod and its node know the network.
func (a Attachment) Name() names.Network { return cmp.Or(a.As, a.Network) }

// Key is the key of the attachment's entry in the annotation of the pod.
func (a Attachment) Key() string { return a.Name().Entry(a.Interface) }

// PodPort names an interface of a pod in one network.
type PodPort struct {
	Pod       Name
	Interface string // as in Attachment
}

// Grants is what package allocate granted in one network.
type Grants struct {
	NodeSubnets map[string][]netip.Prefix // by node
	JoinAddrs   map[string][]netip.Prefix // of gateway routers on the join switch, by node
	PodNetworks map[PodPort]annotation.PodNetwork
	Moves       map[PodPort]PodPort       // the two pods of a virtual machine that moves, both ways
	ExitAddrs   map[string][]netip.Prefix // in the nodes' own subnets, by which pods leave a primary network, by node
	Lacking     map[string]bool           // nodes whose pods wait, since no subnet is free for the node
}

// AddNetwork adds a network in which nothing is granted.
func (s *State) AddNetwork(n *Network) {
	s.Networks[n.Name] = n
	s.grants[n.Name] = &Grants{NodeSubnets: map[string][]netip.Prefix{}, JoinAddrs: map[string][]netip.Prefix{},
		PodNetworks: map[PodPort]annotation.PodNetwork{}, Moves: map[PodPort]PodPort{},
		ExitAddrs: map[string][]netip.Prefix{}, Lacking: map[string]bool{}}
}

// ExpectPods makes room for so many pods in the cluster's own network, unless some have been granted something there.
func (s *State) ExpectPods(pods int) {
	if len(s.PodNetworks) == 0 {
		s.PodNetworks = make(map[PodPort]annotation.PodNetwork, pods)
	}
}

// removeNetwork removes a network, and what was granted in it.
func (s *State) removeNetwork(n names.Network) {
	delete(s.Networks, n)
	delete(s.grants, n)
}

// In is what was granted in a network: nothing in one that is not there. The caller must not change it.
func (s *State) In(n names.Network) *Grants {
	if g := s.grants[n]; g != nil {
		return g
	}
	return &Grants{}
}

// GrantNode records the subnets of a node in a network. With none it takes them back.
func (s *State) GrantNode(n names.Network, node string, subnets []netip.Prefix) Change {
	return grant(s, n, nodeRef(node), s.In(n).NodeSubnets, node, subnets, len(subnets) > 0)
}

// DenyNode records whether pods on a node wait in a network, since no subnet is free for the node.
func (s *State) DenyNode(n names.Network, node string, lacking bool) Change {
	return grant(s, n, nodeRef(node), s.In(n).Lacking, node, true, lacking)
}

// GrantJoin records the addresses of a node's gateway router on the join switch of a network. With none it takes them
// back.
func (s *State) GrantJoin(n names.Network, node string, addrs []netip.Prefix) Change {
	return grant(s, n, nodeRef(node), s.In(n).JoinAddrs, node, addrs, len(addrs) > 0)
}

// GrantExit records the addresses by which pods on a node leave a primary network. With none it takes them back.
func (s *State) GrantExit(n names.Network, node string, addrs []netip.Prefix) Change {
	return grant(s, n, nodeRef(node), s.In(n).ExitAddrs, node, addrs, len(addrs) > 0)
}

// GrantPod records the attachment of a pod to a network. With nil it takes the attachment back.
func (s *State) GrantPod(n names.Network, port PodPort, net *annotation.PodNetwork) Change {
	r := Ref{KindPod, port.Pod}
	if net == nil {
		return grant(s, n, r, s.In(n).PodNetworks, port, annotation.PodNetwork{}, false)
	}
	return grant(s, n, r, s.In(n).PodNetworks, port, *net, true)
}

// GrantMove records that a virtual machine moves between the interfaces of two pods, which have the same addresses.
// Without moves it takes that back.
func (s *State) GrantMove(n names.Network, a, b PodPort, moves bool) []Change {
	of := s.In(n).Moves
	return []Change{grant(s, n, Ref{KindPod, a.Pod}, of, a, b, moves), grant(s, n, Ref{KindPod, b.Pod}, of, b, a, moves)}
}

func nodeRef(name string) Ref { return Ref{KindNode, Name{Name: name}} }

// grant records what was granted to an object, or takes it back unless given.
func grant[K comparable, V any](s *State, n names.Network, r Ref, to map[K]V, k K, v V, given bool) Change {
	c := s.change(r, true, func() {
		if given {
			to[k] = v
		} else {
			delete(to, k)
		}
	})
	c.Network = n
	return c
}

// Defined is true while an object defines a network of this name, also one that is refused. Without a namespace that is
// a ClusterUserDefinedNetwork.
func (s *State) Defined(namespace, name string) bool {
	of := Name{Namespace: namespace, Name: name}
	return s.NetworkDefinitions[of] != nil || s.UserNetworks[of] != nil ||
		namespace == "" && s.ClusterUserNetworks[name] != nil
}
