package kinds

import (
	"encoding/json"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Reasons of Problems with Nodes.
const (
	reasonNodeAddress   = "InvalidNodeAddress"
	reasonNodeCondition = "InvalidNodeCondition"
	reasonNodePhysical  = "InvalidPhysicalNetworks"
)

func decodeNode(n *corev1.Node) (*cluster.Node, []cluster.Problem) {
	out := &cluster.Node{
		Name: n.Name, UID: string(n.UID), Created: n.CreationTimestamp.Unix(),
		Zone: n.Labels[corev1.LabelTopologyZone], Labels: cluster.NewLabels(n.Labels),
	}
	out.Found = cluster.NewFound(n.Annotations, annotation.NodeSubnets, annotation.GatewayJoinAddrs,
		annotation.NodeChassisID, annotation.L3GatewayConfig)
	out.AgentReady = n.Annotations[annotation.NodeAgentReady] == annotation.NodeIsReady
	f := findingsOf(cluster.KindNode, n)
	f.add(out.ReadAnnotations(n.Annotations))
	if value, ok := n.Annotations[annotation.NodePhysicalNetworks]; ok {
		var err error
		if out.Physical, err = annotation.ParseNodePhysicalNetworks(value); err != nil {
			f.bad(reasonNodePhysical, "%v: whether the node has a bridge for networks of topology localnet is not known", err)
		}
	}
	for at, t := range n.Spec.Taints {
		if t.Key != names.TaintAgentNotReady {
			continue
		}
		if text, err := json.Marshal(t); err == nil { // it came as JSON
			out.Taints = append(out.Taints, cluster.Taint{At: at, JSON: string(text)})
		}
	}
	for _, a := range n.Status.Addresses {
		to := map[corev1.NodeAddressType]*[]netip.Addr{
			corev1.NodeInternalIP: &out.Addrs, corev1.NodeExternalIP: &out.ExternalAddrs,
		}[a.Type]
		if to == nil {
			continue
		}
		ip, err := netip.ParseAddr(a.Address)
		if err != nil {
			f.bad(reasonNodeAddress, "status.addresses: %s %.64q is not an IP address such as 192.0.2.1: it is left out",
				a.Type, a.Address)
			continue
		}
		*to = append(*to, ip)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable {
			out.Available = c.Status == corev1.ConditionFalse
		}
		if c.Type != corev1.NodeReady {
			continue
		}
		known(&f, reasonNodeCondition, "status.conditions: status of condition Ready", c.Status,
			"the kubelet counts as running", corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
		out.Unreachable = out.Unreachable || c.Status == corev1.ConditionUnknown
	}
	return out, f.problems
}

func decodeNamespace(n *corev1.Namespace) (*cluster.Namespace, []cluster.Problem) {
	labels := map[string]string{corev1.LabelMetadataName: n.Name} // the API server sets it; a manifest may lack it
	maps.Copy(labels, n.Labels)
	f := findingsOf(cluster.KindNamespace, n)
	out := &cluster.Namespace{Name: n.Name, UID: string(n.UID), Labels: cluster.NewLabels(labels),
		Multicast: decodeMulticast(&f, n.Annotations), Logging: decodeLogging(&f, n.Annotations, "allow", "deny"),
		Tenant: decodeTenant(&f, n.Name, n.Annotations)}
	return out, f.problems
}
