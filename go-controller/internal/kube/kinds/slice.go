package kinds

import (
	"net/netip"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Reasons of Problems with EndpointSlices.
const (
	reasonEndpointPort = "InvalidEndpointPort"
	reasonEndpoint     = "InvalidEndpoint"
	reasonAddressType  = "InvalidAddressType"
)

// decodeSlice takes the ports and all endpoints, whatever their conditions.
func decodeSlice(e *discoveryv1.EndpointSlice) (*cluster.EndpointSlice, []cluster.Problem) {
	out := &cluster.EndpointSlice{Name: NameOf(e), Service: e.Labels[discoveryv1.LabelServiceName]}
	if e.AddressType == discoveryv1.AddressTypeFQDN {
		return out, nil // names have no place in a load balancer
	}
	if _, headless := e.Labels[corev1.IsHeadlessService]; headless {
		return out, nil // its endpoints are for DNS
	}
	f := findingsOf(cluster.KindEndpointSlice, e)
	known(&f, reasonAddressType, "addressType", e.AddressType, "its endpoints are used as their addresses say",
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	for _, p := range e.Ports {
		if p.Port == nil {
			continue // "all ports": of use to consumers that proxy names, not to a load balancer
		}
		proto, ok := protocol(deref(p.Protocol))
		if !ok || portNumber(*p.Port) == 0 {
			f.bad(reasonEndpointPort, "ports: port %d/%s: want a number from 1 to 65535 and TCP, UDP or SCTP: "+
				"the port is left out", *p.Port, proto)
			continue
		}
		out.Ports = append(out.Ports, cluster.EndpointPort{Name: deref(p.Name), Protocol: proto, Port: uint16(*p.Port)})
	}
	slices.SortFunc(out.Ports, cluster.CompareEndpointPorts)
	out.Endpoints = make([]cluster.Endpoint, 0, len(e.Endpoints))
	for i := range e.Endpoints {
		ep := &e.Endpoints[i]
		// No meaning is defined for further addresses (Kubernetes API, Endpoint.addresses).
		if len(ep.Addresses) == 0 {
			f.bad(reasonEndpoint, "endpoints: an endpoint has no address: it is left out")
			continue
		}
		a, err := netip.ParseAddr(ep.Addresses[0])
		if err != nil || a.Zone() != "" {
			f.bad(reasonEndpoint, "endpoints: %q is not an IP address: the endpoint is left out", ep.Addresses[0])
			continue
		}
		out.Endpoints = append(out.Endpoints, decodeEndpoint(e.Namespace, a.Unmap(), ep))
	}
	slices.SortFunc(out.Endpoints, cluster.CompareEndpoints)
	out.Endpoints = slices.Compact(out.Endpoints)
	return out, f.problems
}

func decodeEndpoint(namespace string, a netip.Addr, ep *discoveryv1.Endpoint) cluster.Endpoint {
	out := cluster.Endpoint{
		Addr: a, Conditions: conditions(ep.Conditions), Node: shared(deref(ep.NodeName)), Zone: shared(deref(ep.Zone)),
	}
	if t := ep.TargetRef; t != nil && t.Kind == "Pod" && (t.Namespace == "" || t.Namespace == namespace) {
		out.Pod = t.Name
	}
	if h := ep.Hints; h != nil {
		out.ForZones = joined(h.ForZones, func(z discoveryv1.ForZone) string { return z.Name })
		out.ForNodes = joined(h.ForNodes, func(n discoveryv1.ForNode) string { return n.Name })
	}
	return out
}

// conditions reads an endpoint's conditions. Missing conditions take the API's defaults: ready, serving and not
// terminating (Kubernetes API, EndpointConditions).
func conditions(c discoveryv1.EndpointConditions) cluster.Conditions {
	var out cluster.Conditions
	if c.Ready == nil || *c.Ready {
		out |= cluster.Ready
	}
	if c.Serving == nil || *c.Serving {
		out |= cluster.Serving
	}
	if c.Terminating != nil && *c.Terminating {
		out |= cluster.Terminating
	}
	return out
}

// joined is the names of hints, sorted, with commas between them.
func joined[T any](hints []T, name func(T) string) string {
	names := make([]string, len(hints))
	for i, h := range hints {
		names[i] = name(h)
	}
	slices.Sort(names)
	return shared(strings.Join(slices.Compact(names), ","))
}

// shared is s, held in memory once however often it occurs.
func shared(s string) string {
	if s == "" {
		return ""
	}
	return unique.Make(s).Value()
}

// deref is what p points to, the zero value when it is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
