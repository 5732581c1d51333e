package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// notes describes the effects of a service's fields that its ports do not show, in the network in which it is served.
func notes(n *cluster.Network, svc *cluster.Service, eps []*cluster.EndpointSlice) []string {
	if svc.Type == cluster.ExternalName {
		return []string{"spec.type: ExternalName: DNS answers for the service; the network has nothing to do"}
	}
	if svc.Proxied {
		return []string{fmt.Sprintf("metadata.labels: service.kubernetes.io/service-proxy-name: "+
			"the proxy %q serves it, Northbound does not", svc.Proxy)}
	}
	var out []string
	note := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	has := len(svc.ClusterIPs) > 0
	note(svc.Headless, "spec.clusterIP: None: the service has no virtual address; clients find its endpoints in DNS")
	note(!svc.Headless && !has, "spec.clusterIP: not allocated yet: until then the service answers on no address")
	note(has && len(svc.Ports) == 0, "spec.ports: no port is valid, so the service answers nowhere")
	note(len(eps) == 0, "endpoints: no EndpointSlice is labelled kubernetes.io/service-name=%s", svc.Name.Name)
	note(svc.PublishNotReady, "spec.publishNotReadyAddresses: "+
		"EndpointSlices report endpoints as ready even if their pods are not")
	if !has {
		return out
	}
	if unused := unusedFamily(svc, eps); unused != "" {
		note(true, "spec.clusterIPs: the service has no %[1]s address, so its %[1]s endpoints serve nobody", unused)
	}
	switch service.AffinityOf(svc) {
	case service.AffinityHash:
		note(true, "spec.sessionAffinity: ClientIP for %d s: the client's address selects the backend; "+
			"the choice may change when the endpoints do", svc.AffinitySeconds)
	case service.AffinityTimer:
		note(true, "spec.sessionAffinity: ClientIP for %d s: OVN remembers each client's backend for that "+
			"time, and loses the packet from which it learns a client", svc.AffinitySeconds)
	}
	if n == nil || !n.Hosts {
		return out // the problems say what is not served
	}
	note(svc.InternalLocal, "spec.internalTrafficPolicy: Local: at the ClusterIPs, clients reach only endpoints on "+
		"their own node; packets from a node without endpoints are dropped")
	if line := checks(svc); line != "" {
		note(true, "%s", line)
	}
	const external = "spec.externalTrafficPolicy: Local: "
	note(svc.LocalFromOutside(), external+"clients from outside reach only endpoints on the node that they connect to, "+
		"which see the client's address; clients in the cluster reach all endpoints")
	for _, line := range fromOutside(svc, eps) {
		note(true, external+"%s", line)
	}
	ports := nodePorts(svc)
	note(svc.LocalFromOutside() && len(ports) > 0, external+"a node without endpoints forwards what it sends to its "+
		"own node port to a node with endpoints, which see the first node's address")
	note(svc.HealthCheckPort != 0, "spec.healthCheckNodePort: the node agents answer on port %d: "+
		"200 if an endpoint on the node is ready, otherwise 503", svc.HealthCheckPort)
	note(len(ports) > 0, "spec.ports: the nodes' kernels answer on the node ports %s "+
		"and forward to the ClusterIPs", strings.Join(ports, ", "))
	return out
}

// inPrimary describes how a service is served in a primary network. byExits is true when others reach it, too, and
// strangers are endpoints that do not serve there.
func inPrimary(n *cluster.Network, svc *cluster.Service, byExits bool, strangers []netip.Addr) (out []string) {
	if n == nil || n.Hosts {
		return nil
	}
	out = []string{n.Name.Message("the service is in this primary network: only its pods reach it, at the ClusterIPs")}
	if byExits {
		out = []string{n.Name.Message("the service is in this primary network: all others reach it by way of the network's " +
			"exits, at the exits' addresses and the node ports")}
		if svc.ExternalLocal {
			out = append(out, "spec.externalTrafficPolicy: Local: each exit leads to the endpoints on its node, which see the "+
				"addresses of clients from outside; clients in the cluster reach all endpoints, which see an exit's address")
		}
	}
	if len(strangers) > 0 {
		out = append(out, fmt.Sprintf("endpoints: left out, because only pods of the network serve: %s",
			strings.Join(texts(strangers), ", ")))
	}
	return out
}

// fromOutside lists, for a service with externalTrafficPolicy Local, the endpoints that clients from outside reach at
// each node, port by port.
func fromOutside(svc *cluster.Service, eps []*cluster.EndpointSlice) (out []string) {
	if !svc.LocalFromOutside() {
		return nil
	}
	for _, p := range svc.Ports {
		for _, a := range svc.ClusterIPs {
			nodes := cluster.ChooseLocal(p, a.Is4(), eps).Nodes
			parts := make([]string, 0, len(nodes))
			for _, n := range slices.Sorted(maps.Keys(nodes)) {
				parts = append(parts, fmt.Sprintf("%s on node %s", strings.Join(texts(nodes[n]), " and "), n))
			}
			if len(parts) == 0 {
				parts = []string{"no endpoint on any node"}
			}
			out = append(out, fmt.Sprintf("port %d/%s over %s: %s",
				p.Port, p.Protocol, family(a.Is4()), strings.Join(parts, ", ")))
		}
	}
	return out
}

func nodePorts(svc *cluster.Service) []string {
	var out []string
	for _, p := range svc.Ports {
		if p.NodePort != 0 {
			out = append(out, fmt.Sprintf("%d/%s", p.NodePort, p.Protocol))
		}
	}
	return out
}

// unusedFamily returns the address family in which the service has endpoints but no address, "" if there is none.
func unusedFamily(svc *cluster.Service, eps []*cluster.EndpointSlice) string {
	for _, is4 := range []bool{true, false} {
		of := func(a netip.Addr) bool { return a.Is4() == is4 }
		address := slices.ContainsFunc(svc.Addresses(config.Services{}, nil),
			func(a cluster.ServiceAddr) bool { return of(a.Addr) })
		endpoint := slices.ContainsFunc(eps, func(e *cluster.EndpointSlice) bool {
			return slices.ContainsFunc(e.Endpoints, func(ep cluster.Endpoint) bool { return of(ep.Addr) })
		})
		if endpoint && !address {
			return family(is4)
		}
	}
	return ""
}
