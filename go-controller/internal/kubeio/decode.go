package kubeio

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Decode turns a Node, Namespace, Pod, Service or EndpointSlice into a cluster
// value. ok is false for any other type.
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
	}
	return nil, nil, false
}

func decodeNode(n *corev1.Node) (*cluster.Node, []cluster.Problem) {
	out := &cluster.Node{Name: n.Name, UID: string(n.UID), Created: n.CreationTimestamp.Unix(), Zone: n.Labels[corev1.LabelTopologyZone]}
	problems := out.ReadAnnotations(n.Annotations)
	out.Silent = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
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
			out.AnnotatedAs = err.Error()
			return out, problems
		}
		out.Annotated = &n
		out.ClassicOK = p.Annotations[annotation.PodClassic] == annotation.MarshalPodClassic(n)
	}
	return out, problems
}
