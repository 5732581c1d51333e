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

// notes describes the effects of a service's fields that its ports do not show.
func notes(svc *cluster.Service, eps []*cluster.EndpointSlice) []string {
	if svc.Type == cluster.ExternalName {
		return []string{"spec.type: ExternalName is an answer of DNS: there is nothing to do for the network"}
	}
	if svc.Proxied {
		return []string{fmt.Sprintf("metadata.labels: service.kubernetes.io/service-proxy-name: "+
			"a proxy named %q serves it: there is nothing to do here", svc.Proxy)}
	}
	var out []string
	note := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	has := len(svc.ClusterIPs) > 0
	note(svc.Headless, "spec.clusterIP: None: there is no virtual address; clients find the endpoints in DNS")
	note(!svc.Headless && !has, "spec.clusterIP: none yet: without it the service answers on no other address either")
	note(has && len(svc.Ports) == 0, "spec.ports: none that is valid: the service answers nowhere")
	note(len(eps) == 0, "endpoints: no EndpointSlice is labelled kubernetes.io/service-name=%s", svc.Name.Name)
	note(svc.PublishNotReady, "spec.publishNotReadyAddresses: "+
		"whoever makes the EndpointSlices marks endpoints ready that are not")
	if !has {
		return out
	}
	if unused := unusedFamily(svc, eps); unused != "" {
		note(true, "spec.clusterIPs: none of %s: endpoints of that family get nothing", unused)
	}
	switch service.AffinityOf(svc) {
	case service.AffinityHash:
		note(true, "spec.sessionAffinity: ClientIP for %d s: a client's address decides on its backend, "+
			"as long as these are the endpoints", svc.AffinitySeconds)
	case service.AffinityTimer:
		note(true, "spec.sessionAffinity: ClientIP for %d s: OVN keeps the time; "+
			"the packet by which it learns of a client is lost", svc.AffinitySeconds)
	}
	note(svc.InternalLocal, "spec.internalTrafficPolicy: Local: at the ClusterIPs clients have the endpoints "+
		"of their own node; packets of nodes without any are dropped")
	if line := checks(svc); line != "" {
		note(true, "%s", line)
	}
	const external = "spec.externalTrafficPolicy: Local: "
	note(svc.LocalFromOutside(), external+"clients from outside have the endpoints of the node that they come to, "+
		"which see the clients' addresses; those in the cluster reach all")
	for _, line := range fromOutside(svc, eps) {
		note(true, external+"%s", line)
	}
	ports := nodePorts(svc)
	note(svc.LocalFromOutside() && len(ports) > 0, external+"a node without endpoints leads what it sends to its own "+
		"node port to a node that has some; they see the asking node's address")
	note(svc.HealthCheckPort != 0, "spec.healthCheckNodePort: %d is answered by the node agents: "+
		"200 where an endpoint is ready, else 503", svc.HealthCheckPort)
	note(len(ports) > 0, "spec.ports: node ports %s are answered by the nodes' kernels, "+
		"which send them to the ClusterIPs", strings.Join(ports, ", "))
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
				parts = append(parts, fmt.Sprintf("at %s %s", n, strings.Join(texts(nodes[n]), " ")))
			}
			if len(parts) == 0 {
				parts = []string{"nobody, at any node"}
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
		address := slices.ContainsFunc(svc.Addresses(config.Services{}, nil), func(a cluster.ServiceAddr) bool { return of(a.Addr) })
		endpoint := slices.ContainsFunc(eps, func(e *cluster.EndpointSlice) bool {
			return slices.ContainsFunc(e.Endpoints, func(ep cluster.Endpoint) bool { return of(ep.Addr) })
		})
		if endpoint && !address {
			return family(is4)
		}
	}
	return ""
}
