package annotation

// The annotations of a Pod that the Network Plumbing Working Group has defined ("Kubernetes Network Custom Resource
// Definition De-facto Standard", version 1.3, sections 4 and 5).
const (
	NetworkRequests = "k8s.v1.cni.cncf.io/networks"       // which further interfaces the pod asks for
	NetworkStatus   = "k8s.v1.cni.cncf.io/network-status" // which interfaces the pod has
)

// DefaultNetwork is the annotation by which a pod asks for addresses in its primary network. Multus has the same
// annotation for the network that takes the place of the cluster's own.
const DefaultNetwork = "v1.multus-cni.io/default-network"

// PrimaryClaim is the annotation by which a pod names an IPAMClaim of its primary network. That of DefaultNetwork comes
// first.
const PrimaryClaim = "k8s.ovn.org/primary-udn-ipamclaim"

// OpenPorts is the annotation of a pod of a primary network that lists the ports which its interface in the cluster's
// own network opens: YAML such as "[{protocol: tcp, port: 9090}, {protocol: icmp}]".
const OpenPorts = "k8s.ovn.org/open-default-ports"

// PolicyNetworks is the annotation of a MultiNetworkPolicy that says which networks the policy is about: names of
// NetworkAttachmentDefinitions, each perhaps after its namespace and a slash.
const PolicyNetworks = "k8s.v1.cni.cncf.io/policy-for"

// PodMacvlan is the annotation by which a privileged pod asks for a macvlan, as OpenShift SDN has it: "true" is one on
// the interface with the node's default route, and another value is the name of the node's interface.
const PodMacvlan = "pod.network.openshift.io/assign-macvlan"

// MaxInterfaces is how many further interfaces a pod may have.
const MaxInterfaces = 16

// InterfaceStatus is an interface in the annotation NetworkStatus.
type InterfaceStatus struct {
	Name      string // of the NetworkAttachmentDefinition, "<namespace>/<name>"; what the cluster's own network is called
	Interface string
	Default   bool // it has the pod's default routes
	PodNetwork
}

// interfaceStatusJSON is the wire form (section 5.1).
type interfaceStatusJSON struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips,omitempty"`
	MAC       string   `json:"mac"`
	MTU       int      `json:"mtu,omitempty"`
	Default   bool     `json:"default,omitempty"`
	DNS       struct{} `json:"dns"`
}

// MarshalNetworkStatus writes the annotation NetworkStatus.
func MarshalNetworkStatus(interfaces []InterfaceStatus) string {
	out := make([]interfaceStatusJSON, 0, len(interfaces))
	for _, i := range interfaces {
		j := interfaceStatusJSON{Name: i.Name, Interface: i.Interface, MAC: i.MAC.String(), MTU: i.MTU, Default: i.Default}
		for _, p := range i.IPs {
			j.IPs = append(j.IPs, p.Addr().String())
		}
		out = append(out, j)
	}
	return marshal(out)
}
