package names

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// Fixed names.
const (
	DefaultClusterRouter = "ovn_cluster_router"
	JoinSwitch           = "join"
	ClusterLBGroup       = ClusterOwner + lbGroup // the Load_Balancer_Group that every node switch carries
	IntegrationBridge    = "br-int"
)

// lbGroup ends the names of the Load_Balancer_Groups of networks, and exitsLBGroup those of the exits of one.
const (
	lbGroup      = "LBGroup"
	exitsLBGroup = "-exits" + lbGroup
)

// LBGroup is the Load_Balancer_Group of a network, "clusterLBGroup" in the cluster's own network. owner is that of what
// the network has once: Network.Owner of ClusterOwner or UserOwner.
func LBGroup(owner string) string {
	n, name := NetworkOf(owner)
	return n.within("_", name+lbGroup)
}

// ExitsLBGroup is the Load_Balancer_Group of the exits of a primary network. owner is that of what the network has
// once.
func ExitsLBGroup(owner string) string {
	n, name := NetworkOf(owner)
	return n.within("_", name+exitsLBGroup)
}

// zoneLBGroup begins the names of the Load_Balancer_Groups of zones.
const zoneLBGroup = "zoneLBGroup_"

// ZoneLBGroup is the Load_Balancer_Group that the switches of a zone's nodes
// carry; zone is "" for the nodes that are in none.
func ZoneLBGroup(zone string) string { return zoneLBGroup + ZoneOwner(zone) }

// LBGroupOwner tells by its name whose a Load_Balancer_Group is, and in which role. It has no place for a mark.
func LBGroupOwner(name string) (k Kind, owner, role string, ok bool) {
	if name == ClusterLBGroup {
		return KindCluster, ClusterOwner, RoleLBGroup, true
	}
	if name == ExitLBGroup {
		return KindExit, ClusterOwner, RoleLBGroup, true
	}
	if owner, ok = strings.CutPrefix(name, zoneLBGroup); ok {
		return KindZone, owner, RoleLBGroup, owner != ""
	}
	role = RoleExitsLBGroup
	before, ok := strings.CutSuffix(name, exitsLBGroup)
	if !ok {
		role = RoleLBGroup
		before, ok = strings.CutSuffix(name, lbGroup)
	}
	network, name, further := strings.Cut(before, "_")
	return KindCluster, Network(network).Owner(name), role, ok && further && (name == ClusterOwner || name == UserOwner)
}

// The client's address that a server on a node's host network sees, when a connection comes to it through a service
// and that same node's kernel. Link-local (RFC 3927) and unique local (RFC 4193), they mean the same on every node and
// never leave one.
const (
	HairpinSource4 = "169.254.169.6"
	HairpinSource6 = "fd69::6"
)

// The source address that a pod sees when it reaches itself through a service (ovn-nb(5), Load_Balancer
// options:hairpin_snat_ip).
const (
	HairpinSNAT4 = "169.254.169.5"
	HairpinSNAT6 = "fd69::5"
)

// ExitLBGroup is the Load_Balancer_Group of the routers by which pods of primary networks leave these.
const ExitLBGroup = "exitLBGroup"

// ExitPlace is the place of the load balancers that these routers have, in their names.
const ExitPlace = "exit"

// Priorities of the policies of routers of primary networks.
const (
	PolicyNoExit    = 1    // of the network's router: what no exit takes is dropped
	PolicyExit      = 100  // of the network's router: what leaves the network goes to the exit of the pod's node
	PolicyExitGuard = 1000 // of an exit: what neither may pass
)

// Priorities of the cluster router's policies (ovn-nb(5), Logical_Router_Policy).
const (
	PolicyInside = 1001 // what is for pods goes where the routes say, and what is for no service is dropped
	PolicyReply  = 1000 // answers of a Local service's endpoints go back by way of their node
	PolicyPin    = 200  // and the length of the subnet more: pods that are pinned to gateways
)

// The UDP ports of tunnels between nodes.
const (
	GenevePort = 6081 // RFC 8926 section 3.3
	VXLANPort  = 4789 // RFC 7348 section 5
)

// RouterToSwitch is the distributed router's port to a node switch.
func RouterToSwitch(nodeSwitch string) string { return "rtos-" + nodeSwitch }

// SwitchToRouter is a node switch's port to the distributed router.
func SwitchToRouter(nodeSwitch string) string { return "stor-" + nodeSwitch }

// ManagementPort is the logical port through which a node reaches the overlay.
// It is also the iface-id of the OVS interface.
func ManagementPort(node string) string { return "k8s-" + node }

// RouterToJoin is a router's port to the join switch.
func RouterToJoin(router string) string { return "rtoj-" + router }

// RouterToPods is an exit's port to its node's switch.
func RouterToPods(router string) string { return "rtox-" + router }

// PodsToRouter is the node's switch's port to an exit.
func PodsToRouter(router string) string { return "xtor-" + router }

// JoinToRouter is the join switch's port to a router.
func JoinToRouter(router string) string { return "jtor-" + router }

// GatewayRouter is the name of a node's gateway router.
func GatewayRouter(node string) string { return "GR_" + node }

// ExternalSwitch is the switch between a node's gateway router and the
// physical network.
func ExternalSwitch(node string) string { return "ext_" + node }

// RouterToExternal is a gateway router's port to its external switch.
func RouterToExternal(node string) string { return "rtoe-" + GatewayRouter(node) }

// ExternalToRouter is the external switch's port to the gateway router.
func ExternalToRouter(node string) string { return "etor-" + GatewayRouter(node) }

// LocalnetPort is the external switch's port to the bridge.
func LocalnetPort(bridge, node string) string { return bridge + "_" + node }

// LoadBalancer is the load balancer of one protocol ("TCP", "UDP", "SCTP") of
// a service. place is the nodes that it is for, "" for all.
func LoadBalancer(namespace, service, protocol, place string) string {
	name := "Service_" + namespace + "/" + service + "_" + protocol
	if place != "" {
		name += "_" + place
	}
	return name
}

// Family names an address family in the name of an address set.
type Family string

// The two families.
const (
	IPv4 Family = "v4"
	IPv6 Family = "v6"
)

// FamilyOf is IPv4 or IPv6.
func FamilyOf(is4 bool) Family {
	if is4 {
		return IPv4
	}
	return IPv6
}

// NamespaceAddressSet is the address set with a namespace's pod addresses of
// one family. OVN allows letters, digits, '_' and '.' in such a name; the
// dashes of a namespace become underscores, which a namespace can't contain.
func NamespaceAddressSet(namespace string, f Family) string {
	return "ns_" + strings.ReplaceAll(namespace, "-", "_") + "_" + string(f)
}

// ifNameMax is the longest name of a Linux network interface (IFNAMSIZ - 1).
const ifNameMax = 15

// IsInterface is true for what can be the name of a Linux network interface: the
// kernel takes no slash and no space (net/core/dev.c, dev_valid_name).
func IsInterface(name string) bool {
	return name != "" && len(name) <= ifNameMax && name != "." && name != ".." &&
		!strings.ContainsAny(name, "/: \t\n\v\f\r")
}

// IsFurtherInterface is true for what can be the name of an interface of a pod beside eth0. The kernel has parameters
// for all interfaces under the names all and default, and takes a % for a pattern.
func IsFurtherInterface(name string) bool {
	switch name {
	case "lo", "eth0", "all", "default":
		return false
	}
	return IsInterface(name) && !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == '%' })
}

// ManagementInterface is the Linux name of the management port's internal
// interface: "k8s-<node>" cut to 15 characters.
func ManagementInterface(node string) string { return cut(ManagementPort(node)) }

// HostVeth is the host side of a pod's veth pair: the first 15 characters of
// the container's id. For another interface it is the first 8, and a hash.
func HostVeth(attachmentID string) string {
	container, _, other := strings.Cut(attachmentID, "/")
	if !other {
		return cut(container)
	}
	sum := sha1.Sum([]byte(attachmentID))
	return furtherVeths(container) + hex.EncodeToString(sum[:3])
}

// furtherVeths is how the host sides of a container's further interfaces begin.
func furtherVeths(container string) string { return container[:min(len(container), 8)] + "_" }

// MayBeVethOf tells whether the host side of an interface of the container may have the name. Containers whose ids
// begin alike share the names of further interfaces.
func MayBeVethOf(containerID, hostVeth string) bool {
	return hostVeth == HostVeth(containerID) || strings.HasPrefix(hostVeth, furtherVeths(containerID))
}

func cut(s string) string {
	if len(s) > ifNameMax {
		return s[:ifNameMax]
	}
	return s
}

// SNATPorts is the range of source ports of connections that get a node's address, and are not the node's own.
//
//   - What pods send to the outside with their node's address (ovn-nb(5), NAT external_port_range). The node has the
//     address too: of a connection from a port that both use to one destination, the answers could be told from no
//     other's.
//   - What a node's kernel forwards to pods with the management port's address. A policy lets in what the pod's own
//     node sends, such as probes. The port tells it from what the node forwards for others.
//
// So the range has neither the ports that Linux gives its own connections (32768 and up, ip-sysctl.rst
// ip_local_port_range) nor those of Kubernetes' node ports (30000-32767), nor those of the tunnels, whose packets the
// external bridge gives to the host: an answer to port 6081 would end there.
const SNATPorts = "10240-29999"

// FirstSNATPort and LastSNATPort are the ends of SNATPorts.
const (
	FirstSNATPort = 10240
	LastSNATPort  = 29999
)

// FirstNodePort and LastNodePort are the ends of the range of node ports (kube-apiserver --service-node-port-range, the
// default).
const (
	FirstNodePort = 30000
	LastNodePort  = 32767
)
