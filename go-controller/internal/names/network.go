package names

import "strings"

// Network is the name of a network. It is a DNS subdomain (RFC 1123), so that it contains neither "_" nor "/".
type Network string

// Own is the cluster's own network, which every pod is in.
const Own Network = "default"

// Defined is the network that a NetworkAttachmentDefinition of a namespace describes. A namespace has no dot in its
// name (RFC 1123, label), so that no two have one network. Without a namespace it is that of a
// ClusterUserDefinedNetwork. Its name begins with a dot: no namespace's name does, so that no pod has a port of the
// name of a row of it.
func Defined(namespace, name string) Network { return Network(namespace + "." + name) }

// Definition is the inverse of Defined; ok is false for another network.
func (n Network) Definition() (namespace, name string, ok bool) { return strings.Cut(string(n), ".") }

// SharedSwitch is the switch of a network that has one for the pods of all nodes.
func (n Network) SharedSwitch() string { return n.within("_", "switch") }

// PrimaryInterface is the name of a pod's interface in its primary network.
const PrimaryInterface = "ovn-udn1"

// PrimaryLabel is the label of a namespace whose pods are in a primary network. Its value does not matter.
const PrimaryLabel = "k8s.ovn.org/primary-user-defined-network"

// ExitEntry is the key of the address in a node's own subnet by which pods of the network leave it there, in the
// annotation that has the routers' addresses. No network has the name: it contains a slash.
func (n Network) ExitEntry() Network { return Network(n.within("/", "exit")) }

// ExitRouter is the gateway router by which pods of the network leave it on a node.
func (n Network) ExitRouter(node string) string { return "GR_" + n.within("_", node) }

// Localnet is the port of that switch to the network outside.
func (n Network) Localnet() string { return n.within("_", localnet) }

const localnet = "localnet"

// OfLocalnet is the inverse of Localnet, for a network other than the cluster's own; ok is false for other ports.
func OfLocalnet(port string) (n Network, ok bool) {
	name, ok := strings.CutSuffix(port, "_"+localnet)
	n = Network(name)
	_, _, defined := n.Definition()
	return n, ok && defined
}

// HasPort is true for the logical ports of pods in a network other than the cluster's own. Pods know a
// ClusterUserDefinedNetwork, which has no namespace, as one of theirs.
func (n Network) HasPort(port string) bool {
	namespace, name, _ := n.Definition()
	of, rest, _ := strings.Cut(port, ".")
	return (namespace == "" || of == namespace) && strings.HasPrefix(rest, name+"_")
}

// Valid is true for the name of a network.
func (n Network) Valid() bool {
	for label := range strings.SplitSeq(string(n), ".") {
		if label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return len(n) <= 253
}

func notInLabel(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' }

// within is a name within the network: the name itself in the cluster's own network, and "<network><separator><name>"
// in another. This is the only place that asks whether a network is the cluster's own.
func (n Network) within(separator, name string) string {
	if n == Own {
		return name
	}
	return string(n) + separator + name
}

// Message is a message to users about the network.
func (n Network) Message(text string) string { return strings.TrimPrefix(n.within(": ", text), ".") }

// Owner is the name of an owner of rows in the network: of a node, ClusterOwner or UserOwner.
func (n Network) Owner(name string) string { return n.within("/", name) }

// NetworkOf is the inverse of Owner.
func NetworkOf(owner string) (n Network, name string) {
	if network, name, ok := strings.Cut(owner, "/"); ok {
		return Network(network), name
	}
	return Own, owner
}

// Router is the distributed router of the network. In the cluster's own network it is the cluster router.
func (n Network) Router(clusterRouter string) string { return n.within("_", clusterRouter) }

// JoinSwitch is the switch between the distributed router and the gateway routers.
func (n Network) JoinSwitch() string { return n.within("_", JoinSwitch) }

// NodeSwitch is the logical switch of a node's pods. In the cluster's own network it has the node's own name.
func (n Network) NodeSwitch(node string) string { return n.within("_", node) }

// LogicalPort is the logical port of a pod, and the iface-id of its OVS interface: "<namespace>_<pod>" in the cluster's
// own network, where a pod has one interface, and "<network>_<namespace>_<pod>_<interface>" in another. Only the
// interface can contain an underscore (RFC 1123), so the name is unique.
func (n Network) LogicalPort(namespace, pod, iface string) string {
	port := n.within("_", namespace+"_"+pod)
	if iface != "" {
		port += "_" + iface
	}
	return port
}

// Entry is the key of a pod's attachment to the network in the pod's annotation: the network, and the interface unless
// that is the one that Kubernetes itself asks for.
func (n Network) Entry(iface string) string { return at(string(n), iface) }

// EntryOf is the inverse of Entry.
func EntryOf(key string) (n Network, iface string) {
	network, iface, _ := strings.Cut(key, "/")
	return Network(network), iface
}

// CanHave is true when a pod can have the interface in the network. The one that Kubernetes itself asks for, "", is
// in the cluster's own network, and further ones are in others.
func (n Network) CanHave(iface string) bool { return (n.within("/", "") == "") == (iface == "") }

// AttachmentID identifies an interface of a container: the container's id, and the interface as in Entry. Neither
// contains a slash.
func AttachmentID(containerID, iface string) string { return at(containerID, iface) }

// ContainerOf is the id of the container that an attachment is of.
func ContainerOf(attachmentID string) string {
	container, _, _ := strings.Cut(attachmentID, "/")
	return container
}

func at(name, iface string) string {
	if iface == "" {
		return name
	}
	return name + "/" + iface
}

// Further is true for a network other than the cluster's own: nodes are not in it, and it may have other address
// families.
func (n Network) Further() bool { return n.within("/", "") != "" }

// RuleRole is the role of a row of a policy's rule in the network, where role is what it would be in the cluster's own.
func (n Network) RuleRole(role string) string {
	if n.Further() {
		return role + "-in-" + string(n)
	}
	return role
}

// IngressGroup is the port group of the interfaces that any policy of the network with Ingress selects. It is for a
// network other than the cluster's own, where there is one for each node.
func (n Network) IngressGroup() string { return IngressGroup(n.Owner(ClusterOwner)) }

// EgressGroup is the same for policies with Egress.
func (n Network) EgressGroup() string { return EgressGroup(n.Owner(ClusterOwner)) }

// PortRole is the role of a pod's logical port: RolePort in the cluster's own network, "port-<network>/<interface>" in
// another.
func (n Network) PortRole(iface string) string {
	if at := n.within("/", iface); at != "" {
		return RolePort + "-" + at
	}
	return RolePort
}

// PortOf is the inverse of PortRole; ok is false for another role.
func PortOf(role string) (n Network, iface string, ok bool) {
	if role == RolePort {
		return Own, "", true
	}
	key, ok := strings.CutPrefix(role, RolePort+"-")
	n, iface = EntryOf(key)
	return n, iface, ok && iface != ""
}
