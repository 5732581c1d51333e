package cluster

import (
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Why a service of a primary network does not answer on an address that it names.
const (
	NotInPrimary Withheld = "the service's pods are in a primary network, to which only services with node ports " +
		"lead from outside"
	OfPrimary Withheld = "it is in the ranges of the primary network itself, whose pods and routers have such addresses"
)

// ServedIn is the network in which clients reach a service: that of the pods of its namespace. It is nil when nobody
// reaches the service, and why says why.
func (s *State) ServedIn(svc *Service) (n *Network, why string) {
	if !s.Locked(svc.Name) {
		return s.Networks[names.Own], ""
	}
	primary, why := s.Primary(svc.Name.Namespace)
	switch n = s.Networks[primary]; {
	case why != "":
		return nil, why
	case n == nil:
		return nil, "the namespace's primary network is refused: its own Events say why"
	case svc.InternalLocal:
		return nil, "spec.internalTrafficPolicy: Local is not served in a primary network, want Cluster"
	}
	return n, ""
}

// AddressesIn is Addresses for a service that is served in a network, or in none.
func (s *Service) AddressesIn(n *Network, c config.Services, t *Taken) []ServiceAddr {
	out := s.Addresses(c, t)
	for i := range out {
		a := &out[i]
		switch {
		case !a.Withheld.Served(), n != nil && (n.Hosts || a.Origin == FromClusterIPs):
		case n == nil || !s.ByExits(c):
			a.Withheld = NotInPrimary
		case n.owns(a.Addr):
			a.Withheld = OfPrimary
		}
	}
	return out
}

// owns is true for an address in the network's ranges, of pods or between its routers.
func (n *Network) owns(a netip.Addr) bool {
	return slices.ContainsFunc(n.Subnets, func(s config.ClusterSubnet) bool { return s.CIDR.Contains(a) }) ||
		slices.ContainsFunc(n.JoinSubnets, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ByExits is true for a service that everybody reaches if its pods are in a primary network, by way of exits: they
// answer at its node ports.
func (s *Service) ByExits(c config.Services) bool {
	return !s.InternalLocal && s.hasNodePorts() && s.ServesNodePorts(c)
}

// ExitSlices is what the cluster's own network has in place of the endpoints of a service of a primary network: the
// network's exits, at the node ports. There are none for a port that has no backends in a family. eps are the endpoints
// in the primary network. With externalTrafficPolicy Local, an exit is as the endpoints on its node are.
func (s *State) ExitSlices(n *Network, svc *Service, eps []*EndpointSlice) (out []*EndpointSlice) {
	for _, is4 := range []bool{true, false} {
		if svc.ExternalLocal {
			out = append(out, s.localExits(n, svc, is4, eps)...)
			continue
		}
		e := s.exitSlice(n, svc, is4, func(string) (Conditions, bool) { return Ready, true })
		for _, p := range svc.Ports {
			if p.NodePort != 0 && len(Choose(p, is4, eps).Backends) > 0 {
				e.Ports = append(e.Ports, atNodePort(p))
			}
		}
		slices.SortFunc(e.Ports, CompareEndpointPorts)
		out = append(out, e)
	}
	return out
}

// localExits is a slice for each port: its exits are those of nodes that have endpoints with this port.
func (s *State) localExits(n *Network, svc *Service, is4 bool, eps []*EndpointSlice) (out []*EndpointSlice) {
	for _, p := range svc.Ports {
		if p.NodePort == 0 {
			continue
		}
		stages := StagesOfNodes(p, is4, eps)
		e := s.exitSlice(n, svc, is4, func(node string) (Conditions, bool) {
			stage, ok := stages[node]
			return stage, ok
		})
		e.Ports = []EndpointPort{atNodePort(p)}
		out = append(out, e)
	}
	return out
}

func atNodePort(p ServicePort) EndpointPort {
	return EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: p.NodePort}
}

// exitSlice is the exits of a network in a family, on those nodes for which conditions are given.
func (s *State) exitSlice(
	n *Network, svc *Service, is4 bool, conditions func(node string) (Conditions, bool),
) *EndpointSlice {
	e := &EndpointSlice{Name: svc.Name, Service: svc.Name.Name}
	for node, addrs := range s.In(n.Name).ExitAddrs {
		c, in := conditions(node)
		if !in || len(s.In(n.Name).JoinAddrs[node]) == 0 { // without those, the exit has no router
			continue
		}
		for _, a := range ipnet.Addrs(addrs) {
			if a.Is4() == is4 {
				e.Endpoints = append(e.Endpoints, Endpoint{Addr: a, Node: node, Conditions: c})
			}
		}
	}
	slices.SortFunc(e.Endpoints, CompareEndpoints)
	return e
}

// SlicesIn is the endpoint slices of a service, sorted by name, with the addresses that the endpoints have in a
// network. Those that are left out are no pods in the network, or don't have the pod's address in the cluster's own.
// Hints are ignored: a primary network may have one switch for clients on all nodes.
func (s *State) SlicesIn(n *Network, service Name) (all []*EndpointSlice, left []netip.Addr) {
	all = s.SlicesOf(service)
	if n == nil || n.Hosts {
		return all, nil
	}
	for i, e := range all {
		of := *e
		of.Endpoints = nil
		for _, ep := range e.Endpoints {
			addr, in := s.addrIn(n.Name, e.Name.Namespace, ep)
			if !in {
				left = append(left, ep.Addr)
				continue
			}
			ep.Addr, ep.ForZones, ep.ForNodes = addr, "", ""
			of.Endpoints = append(of.Endpoints, ep)
		}
		slices.SortFunc(of.Endpoints, CompareEndpoints)
		all[i] = &of
	}
	return all, left
}

// addrIn is the address of the same family that an endpoint of a namespace has in a primary network.
func (s *State) addrIn(n names.Network, namespace string, e Endpoint) (a netip.Addr, ok bool) {
	pod := Name{namespace, e.Pod}
	if e.Pod == "" || !slices.Contains(PodAddrs(s.PodNetworks[PodPort{Pod: pod}]), e.Addr) {
		return a, false
	}
	for _, a := range PodAddrs(s.In(n).PodNetworks[PodPort{Pod: pod, Interface: names.PrimaryInterface}]) {
		if a.Is4() == e.Addr.Is4() {
			return a, true
		}
	}
	return a, false
}

// ServicesOfPod lists the services of a primary network that have a pod as an endpoint. It looks at all endpoints of
// the pod's namespace, and lists none for a pod that is in no primary network.
func (s *State) ServicesOfPod(pod Name) (out []Name) {
	if !s.Locked(pod) {
		return nil
	}
	for slice := range s.slicesByNamespace[pod.Namespace] {
		e := s.Slices[slice]
		if slices.ContainsFunc(e.Endpoints, func(ep Endpoint) bool { return ep.Pod == pod.Name }) {
			out = append(out, Name{pod.Namespace, e.Service})
		}
	}
	return out
}

// ServicesIn lists the services of a namespace, in no order. It looks at every service.
func (s *State) ServicesIn(namespace string) (out []Name) {
	for name := range s.Services {
		if name.Namespace == namespace {
			out = append(out, name)
		}
	}
	return out
}

// ExitServices lists the services that pods of primary networks reach in the cluster's own network.
func ExitServices() []Name {
	return []Name{APIService(), DNSService()}
}

// APIService is the Kubernetes API.
func APIService() Name { return Name{Namespace: "default", Name: "kubernetes"} }

// DNSService is the cluster's DNS.
func DNSService() Name { return Name{Namespace: "kube-system", Name: "kube-dns"} }

// IsExitService is true for the name of one of ExitServices.
func IsExitService(svc Name) bool { return slices.Contains(ExitServices(), svc) }

// ExitAddresses lists the ClusterIPs of these.
func (s *State) ExitAddresses() (out []netip.Prefix) {
	for _, name := range ExitServices() {
		if svc := s.Services[name]; svc != nil {
			for _, ip := range svc.ClusterIPs {
				out = append(out, ipnet.Single(ip))
			}
		}
	}
	return out
}
