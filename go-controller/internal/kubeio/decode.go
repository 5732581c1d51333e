package kubeio

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Decode turns a Node, Namespace, Pod, Service, EndpointSlice or ServiceCIDR
// into a cluster value. ok is false for any other type.
func Decode(obj any) (o cluster.Object, problems []cluster.Problem, ok bool) {
	switch obj := obj.(type) {
	case *corev1.Node:
		n, problems := decodeNode(obj)
		return n, problems, true
	case *corev1.Namespace:
		return &cluster.Namespace{Name: obj.Name, UID: string(obj.UID)}, nil, true
	case *corev1.Pod:
		p, problems := decodePod(obj)
		return p, problems, true
	case *corev1.Service:
		s, problems := decodeService(obj)
		return s, problems, true
	case *discoveryv1.EndpointSlice:
		e, problems := decodeSlice(obj)
		return e, problems, true
	case *networkingv1.ServiceCIDR:
		c, problems := decodeServiceCIDR(obj)
		return c, problems, true
	}
	return nil, nil, false
}

func decodeServiceCIDR(c *networkingv1.ServiceCIDR) (*cluster.ServiceCIDR, []cluster.Problem) {
	out := &cluster.ServiceCIDR{Name: c.Name}
	var problems []cluster.Problem
	for i, text := range c.Spec.CIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			problems = append(problems, cluster.Problem{Ref: out.Ref(), UID: string(c.UID), Reason: "InvalidServiceCIDR",
				Message: fmt.Sprintf("spec.cidrs[%d]: %q: want an address range like 10.96.0.0/16 or fd02::/112: the range is left out", i, text)})
			continue
		}
		out.CIDRs = append(out.CIDRs, p.Masked())
	}
	slices.SortFunc(out.CIDRs, netip.Prefix.Compare)
	return out, problems
}

func decodeNode(n *corev1.Node) (*cluster.Node, []cluster.Problem) {
	out := &cluster.Node{Name: n.Name, UID: string(n.UID), Created: n.CreationTimestamp.Unix(), Zone: n.Labels[corev1.LabelTopologyZone]}
	problems := out.ReadAnnotations(n.Annotations)
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == corev1.NodeInternalIP && err == nil {
			out.Addrs = append(out.Addrs, ip)
		}
	}
	out.Unreachable = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
	return out, problems
}

func decodePod(p *corev1.Pod) (*cluster.Pod, []cluster.Problem) {
	out := &cluster.Pod{
		Name: cluster.Name{Namespace: p.Namespace, Name: p.Name}, UID: string(p.UID), Node: p.Spec.NodeName,
		Created:     p.CreationTimestamp.Unix(),
		HostNetwork: p.Spec.HostNetwork,
		Finished:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	var problems []cluster.Problem
	out.Bandwidth, problems = decodeBandwidth(p, out.Ref())
	if raw, ok := p.Annotations[annotation.PodNetworks]; ok {
		n, err := annotation.ParsePodNetworks(raw)
		if err != nil {
			out.AnnotationError = err.Error()
			return out, problems
		}
		out.Annotated = &n
		out.ClassicOK = p.Annotations[annotation.PodClassic] == annotation.MarshalPodClassic(n)
	}
	return out, problems
}
