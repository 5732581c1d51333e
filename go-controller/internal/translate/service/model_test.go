package service_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// This file states what Kubernetes promises of services, in as few words as possible. It follows the Kubernetes API
// documentation (k8s.io/api, core/v1 ServiceSpec and discovery/v1 EndpointSlice; "Virtual IPs and service proxies",
// "Topology Aware Routing"), not the translator. Where Kubernetes leaves something open, it states what
// docs/features/services.md promises.

// kube is a cluster as its API server has it.
type kube struct {
	nodes    []*corev1.Node
	pods     []*corev1.Pod // none is needed for the model
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
}

// vip is what a client connects to: "TCP 10.96.0.1:80".
type vip string

func newVIP(p corev1.Protocol, addr string, port int32) vip {
	return vip(fmt.Sprintf("%s %s", cmp.Or(p, corev1.ProtocolTCP), netip.AddrPortFrom(netip.MustParseAddr(addr),
		uint16(port))))
}

// The results for a new connection that gets no backend.
const (
	refused = "refused" // at once
	dropped = "dropped"
)

// answers is the result for a new connection from a pod on a node to every address that services have: refused,
// dropped, or the possible backends and how long a client keeps its own. An address that is missing belongs to no
// service, or is left to the node's kernel.
func (k *kube) answers(node *corev1.Node) map[vip]string {
	out := map[vip]string{}
	for v, c := range k.holders() {
		if c.limited {
			continue
		}
		text := refused
		eps := k.endpoints(c.service, c.port, c.addr.Is4())
		if chosen := choice(eps, node, c.internalLocal()); len(chosen) > 0 {
			text = strings.Join(chosen, ",") + stickiness(c.service)
		} else if len(choice(eps, node, false)) > 0 {
			text = dropped // there are endpoints, but none on the node
		}
		out[v] = text
	}
	return out
}

// claim is one port of a service at one of its addresses.
type claim struct {
	service *corev1.Service
	port    corev1.ServicePort
	addr    netip.Addr
	cluster bool // it is a cluster IP of the service
	outside bool // it is where the nodes' kernels lead who comes from outside
	limited bool // not everybody may use it: the nodes' kernels answer, as OVN could not keep anybody out
}

// internalLocal is true when only endpoints on the client's node may answer. internalTrafficPolicy applies to the
// cluster IP; "traffic sent to an External IP or LoadBalancer IP from within the cluster will always get Cluster
// semantics".
func (c claim) internalLocal() bool {
	p := c.service.Spec.InternalTrafficPolicy
	return c.cluster && !c.outside && p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal
}

// holders is the service that has each VIP. Kubernetes does not say what holds when two name the same; services.md
// does.
func (k *kube) holders() map[vip]claim {
	out := map[vip]claim{}
	for _, s := range k.services {
		for _, c := range claims(s) {
			v := newVIP(c.port.Protocol, c.addr.String(), c.port.Port)
			if other, taken := out[v]; !taken || c.before(other) {
				out[v] = c
			}
		}
	}
	return out
}

// before is true when c has the VIP although d names it too.
func (c claim) before(d claim) bool {
	if c.cluster != d.cluster {
		return c.cluster
	}
	return cmp.Or(c.service.CreationTimestamp.Compare(d.service.CreationTimestamp.Time),
		cmp.Compare(c.service.Namespace, d.service.Namespace), cmp.Compare(c.service.Name, d.service.Name)) < 0
}

// claims lists the ports of a service at each address where the cluster is to answer.
func claims(s *corev1.Service) []claim {
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone ||
		s.Spec.ClusterIP == "" {
		return nil // an alias in DNS, headless, or not allocated yet
	}
	if _, other := s.Labels["service.kubernetes.io/service-proxy-name"]; other {
		return nil // another proxy serves it ("Well-Known Labels, Annotations and Taints")
	}
	addrs, limited := map[string]bool{}, map[string]bool{} // the first: to whether it is a cluster IP
	for _, a := range s.Spec.ExternalIPs {
		addrs[a] = false
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, i := range s.Status.LoadBalancer.Ingress {
			switch {
			case i.IP == "" || i.IPMode != nil && *i.IPMode != corev1.LoadBalancerIPModeVIP:
				// With ipMode Proxy, packets arrive with a node's or a pod's address as the destination.
			default: // the limits hold at the address, whatever else it is
				addrs[i.IP], limited[i.IP] = false, len(s.Spec.LoadBalancerSourceRanges) > 0
			}
		}
	}
	// Nobody may have a ClusterIP as an external address (services.md).
	maps.DeleteFunc(addrs, func(a string, _ bool) bool {
		return slices.ContainsFunc(dualStack().ServiceCIDRs, func(p netip.Prefix) bool {
			return p.Contains(netip.MustParseAddr(a))
		})
	})
	for _, a := range s.Spec.ClusterIPs {
		addrs[a] = true
	}
	var out []claim
	for a, cluster := range addrs {
		for _, p := range s.Spec.Ports {
			out = append(out, claim{s, p, netip.MustParseAddr(a), cluster, false, limited[a] && !cluster})
		}
		if c := (claim{service: s, cluster: cluster}); c.internalLocal() {
			out = append(out, fromOutside(s, netip.MustParseAddr(a))...)
		}
	}
	return out
}

// fromOutside lists the ports of a ClusterIP to which the nodes' kernels forward connections from outside, for a
// service with internalTrafficPolicy Local (services.md): those from 65535 down that none of its ports has, in their
// order.
func fromOutside(s *corev1.Service, a netip.Addr) []claim {
	var out []claim
	number := int32(65535)
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 || len(s.Spec.ExternalIPs) > 0 ||
			slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP != "" }) {
			p.Port = number
			out = append(out, claim{s, p, a, true, true, false})
		}
		number--
	}
	return out
}

// endpoint is one backend of a service port.
type endpoint struct {
	addr               string // 10.0.0.1:8080
	ready, terminating bool   // terminating: and serving
	node               string
	zones, nodes       []string // that it is hinted to
}

// endpoints lists the backends of a service port of one family: those of the port's name and protocol in every slice of
// the service. An endpoint in several slices counts once, with the conditions of all.
func (k *kube) endpoints(s *corev1.Service, port corev1.ServicePort, v4 bool) []endpoint {
	family := map[bool]discoveryv1.AddressType{true: discoveryv1.AddressTypeIPv4, false: discoveryv1.AddressTypeIPv6}[v4]
	var out []endpoint
	for _, slice := range k.slices {
		if slice.Namespace != s.Namespace || slice.Labels[discoveryv1.LabelServiceName] != s.Name ||
			slice.AddressType != family {
			continue
		}
		if _, dns := slice.Labels["service.kubernetes.io/headless"]; dns {
			continue // for DNS only
		}
		for _, p := range slice.Ports {
			if value(p.Name, "") != port.Name || value(p.Protocol, corev1.ProtocolTCP) != cmp.Or(port.Protocol,
				corev1.ProtocolTCP) || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				out = merge(out, read(e, *p.Port))
			}
		}
	}
	return out
}

func read(e discoveryv1.Endpoint, port int32) endpoint {
	out := endpoint{addr: netip.AddrPortFrom(netip.MustParseAddr(e.Addresses[0]), uint16(port)).String(),
		node:  value(e.NodeName, ""),
		ready: value(e.Conditions.Ready, true), terminating: value(e.Conditions.Serving, true) &&
			value(e.Conditions.Terminating, false)}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.zones = append(out.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.nodes = append(out.nodes, n.Name)
		}
	}
	return out
}

// merge adds an endpoint. In these clusters, slices differ in an endpoint's conditions only.
func merge(all []endpoint, e endpoint) []endpoint {
	for i := range all {
		if all[i].addr == e.addr {
			all[i].ready = all[i].ready || e.ready
			all[i].terminating = all[i].terminating || e.terminating
			return all
		}
	}
	return append(all, e)
}

// choice lists the backends for a client on a node, in order: the ready ones, or when there are none, those that serve
// while they terminate. With local, only those on the node count; otherwise those that hints choose for the client.
func choice(eps []endpoint, node *corev1.Node, local bool) []string {
	usable := eps
	if local {
		usable = filter(eps, func(e endpoint) bool { return e.node == node.Name })
	}
	ready := filter(usable, func(e endpoint) bool { return e.ready })
	switch {
	case len(ready) == 0:
		ready = filter(usable, func(e endpoint) bool { return e.terminating })
	case !local:
		ready = hinted(ready, node)
	}
	var out []string
	for _, e := range ready {
		out = append(out, e.addr)
	}
	slices.Sort(out)
	return out
}

// hinted lists the endpoints that are hinted for the client's node, else those for its zone, else all. Hints of a kind
// are used when every endpoint has them and one of them names the client's node or zone.
func hinted(eps []endpoint, node *corev1.Node) []endpoint {
	zone := node.Labels[corev1.LabelTopologyZone]
	for _, kind := range []struct {
		here  string
		hints func(endpoint) []string
	}{
		{node.Name, func(e endpoint) []string { return e.nodes }},
		{zone, func(e endpoint) []string { return e.zones }},
	} {
		near := filter(eps, func(e endpoint) bool { return kind.here != "" && slices.Contains(kind.hints(e), kind.here) })
		missing := slices.ContainsFunc(eps, func(e endpoint) bool { return len(kind.hints(e)) == 0 })
		if len(near) > 0 && !missing {
			return near
		}
	}
	return eps
}

// stickiness is how long a client keeps its backend: " for 60s", or nothing without session affinity. From three hours
// on, the default, the client's address alone decides (services.md).
func stickiness(s *corev1.Service) string {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return ""
	}
	seconds := int32(10800)
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	if seconds >= 10800 {
		return " for good"
	}
	return fmt.Sprintf(" for %ds", seconds)
}

func filter(eps []endpoint, keep func(endpoint) bool) []endpoint {
	var out []endpoint
	for _, e := range eps {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// value is what p points to, or what the API says that absence means.
func value[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
