package kubeio

import (
	"fmt"
	"net/netip"
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
	out := &cluster.Node{Name: n.Name, UID: string(n.UID), Created: n.CreationTimestamp.Unix()}
	problems := out.ReadAnnotations(n.Annotations)
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

// decodeService takes the virtual addresses and ports; a service without a
// cluster IP (headless, ExternalName, not yet allocated) has none.
func decodeService(s *corev1.Service) (*cluster.Service, []cluster.Problem) {
	out := &cluster.Service{Name: cluster.Name{Namespace: s.Namespace, Name: s.Name}, UID: string(s.UID)}
	var problems []cluster.Problem
	bad := func(reason, format string, args ...any) {
		problems = append(problems, cluster.Problem{Ref: out.Ref(), UID: out.UID, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return out, nil
	}
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 && s.Spec.ClusterIP != "" {
		ips = []string{s.Spec.ClusterIP}
	}
	for _, ip := range ips {
		a, err := netip.ParseAddr(ip)
		if err != nil || a.Zone() != "" {
			bad("InvalidClusterIP", "spec.clusterIPs: %q is not an IP address: the service gets no load balancer for it", ip)
			continue
		}
		out.ClusterIPs = append(out.ClusterIPs, a.Unmap())
	}
	for _, p := range s.Spec.Ports {
		proto, ok := protocol(p.Protocol)
		if !ok || p.Port < 1 || p.Port > 65535 {
			bad("InvalidServicePort", "spec.ports: port %d/%s: want a number from 1 to 65535 and TCP, UDP or SCTP: the port is left out", p.Port, proto)
			continue
		}
		same := func(q cluster.ServicePort) bool { return q.Protocol == proto && q.Port == uint16(p.Port) }
		if i := slices.IndexFunc(out.Ports, same); i >= 0 {
			bad("InvalidServicePort", "spec.ports: port %d/%s is already port %q, want a number once per protocol: port %q is left out", p.Port, proto, out.Ports[i].Name, p.Name)
			continue
		}
		out.Ports = append(out.Ports, cluster.ServicePort{Name: p.Name, Protocol: proto, Port: uint16(p.Port)})
	}
	if len(out.Ports) == 0 && len(out.ClusterIPs) > 0 {
		bad("NoServicePorts", "spec.ports: no valid port, want at least one: the service gets no load balancer")
	}
	return out, problems
}

// decodeSlice keeps the endpoints that are ready; an absent condition means
// ready (Kubernetes API, EndpointConditions). publishNotReadyAddresses needs
// nothing here: the EndpointSlice controller marks such endpoints ready.
func decodeSlice(e *discoveryv1.EndpointSlice) (*cluster.EndpointSlice, []cluster.Problem) {
	out := &cluster.EndpointSlice{Name: cluster.Name{Namespace: e.Namespace, Name: e.Name}, Service: e.Labels[discoveryv1.LabelServiceName]}
	var problems []cluster.Problem
	bad := func(reason, format string, args ...any) {
		problems = append(problems, cluster.Problem{Ref: out.Ref(), UID: string(e.UID), Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	if e.AddressType == discoveryv1.AddressTypeFQDN {
		return out, nil // names have no place in a load balancer
	}
	for _, p := range e.Ports {
		if p.Port == nil {
			continue // "all ports": of use to consumers that proxy names, not to a load balancer
		}
		var raw corev1.Protocol
		if p.Protocol != nil {
			raw = *p.Protocol
		}
		proto, ok := protocol(raw)
		if !ok || *p.Port < 1 || *p.Port > 65535 {
			bad("InvalidEndpointPort", "ports: port %d/%s: want a number from 1 to 65535 and TCP, UDP or SCTP: the port is left out", *p.Port, proto)
			continue
		}
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		out.Ports = append(out.Ports, cluster.EndpointPort{Name: name, Protocol: proto, Port: uint16(*p.Port)})
	}
	for _, ep := range e.Endpoints {
		if ep.Conditions.Ready != nil && !*ep.Conditions.Ready {
			continue
		}
		// All addresses of an endpoint are the same endpoint: the first is used
		// (Kubernetes API, Endpoint.addresses).
		if len(ep.Addresses) == 0 {
			bad("InvalidEndpoint", "endpoints: an endpoint has no address: it is left out")
			continue
		}
		a, err := netip.ParseAddr(ep.Addresses[0])
		if err != nil || a.Zone() != "" {
			bad("InvalidEndpoint", "endpoints: %q is not an IP address: the endpoint is left out", ep.Addresses[0])
			continue
		}
		out.Ready = append(out.Ready, a.Unmap())
	}
	slices.SortFunc(out.Ready, netip.Addr.Compare)
	out.Ready = slices.Compact(out.Ready)
	return out, problems
}

// protocol reads a protocol; absent means TCP. An unknown one comes back as it
// is, and ok is false.
func protocol(p corev1.Protocol) (cluster.Protocol, bool) {
	switch p {
	case "", corev1.ProtocolTCP:
		return cluster.TCP, true
	case corev1.ProtocolUDP:
		return cluster.UDP, true
	case corev1.ProtocolSCTP:
		return cluster.SCTP, true
	}
	return cluster.Protocol(p), false
}
