package cluster

import (
	"math"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Protocol is a transport protocol as Kubernetes spells it.
type Protocol string

// The protocols a Service may use.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Protocols lists the protocols a Service may use.
func Protocols() []Protocol { return []Protocol{TCP, UDP, SCTP} }

// ServiceType is spec.type of a Service.
type ServiceType string

// The types. They say how far a service is known, not what its network needs:
// that follows from its addresses and ports.
const (
	ClusterIP    ServiceType = "ClusterIP"
	NodePort     ServiceType = "NodePort"
	LoadBalancer ServiceType = "LoadBalancer"
	ExternalName ServiceType = "ExternalName"
)

// ServicePort is one port of a service.
type ServicePort struct {
	Name     string
	Protocol Protocol
	Port     uint16
	NodePort uint16 // on every node's addresses; 0 for none
}

// Ingress is an address of the load balancer outside of the cluster that
// stands before a service (status.loadBalancer.ingress; those that have a host
// name only are none).
type Ingress struct {
	Addr netip.Addr
	// Proxied tells that the load balancer itself answers on the address and
	// connects to nodes or pods (ipMode Proxy): packets to it are not ours.
	Proxied bool
}

// Service is a Kubernetes service, as the API documents its fields. Those that
// say nothing to a network (selector, externalName, ports.appProtocol, ...) are
// left out; ports.targetPort is what EndpointSlices are made from.
type Service struct {
	Name        Name
	UID         string
	Created     int64 // creation time, Unix seconds: of two services that claim one address the older has it
	Type        ServiceType
	Headless    bool   // clusterIP None: no virtual address whatsoever
	Proxied     bool   // a proxy of another name serves it: nothing of what follows is known
	Proxy       string // that name
	ClusterIPs  []netip.Addr
	ExternalIPs []netip.Addr // sorted
	Ingress     []Ingress    // sorted; of type LoadBalancer only
	Ports       []ServicePort

	AffinitySeconds int  // sessionAffinity ClientIP: how long a client keeps its backend; 0 for None
	InternalLocal   bool // internalTrafficPolicy Local
	ExternalLocal   bool // externalTrafficPolicy Local
	HealthCheckPort uint16
	// SourceRanges are the clients that may use the Ingress addresses, sorted;
	// none is everybody. What could not be read is there as the zero Prefix, in
	// which nobody is.
	SourceRanges    []netip.Prefix
	HealthCheck     annotation.HealthCheck // by OVN, from outside of the pods; the zero one for none
	PublishNotReady bool                   // publishNotReadyAddresses; its endpoints are marked ready by who makes the slices
}

// Ref implements Object.
func (s *Service) Ref() Ref { return Ref{KindService, s.Name} }

// Equal implements Object.
func (s *Service) Equal(o Object) bool {
	t, ok := o.(*Service)
	return ok && s.Name == t.Name && s.UID == t.UID && s.Created == t.Created && s.Type == t.Type && s.Headless == t.Headless && s.Proxied == t.Proxied && s.Proxy == t.Proxy &&
		slices.Equal(s.ClusterIPs, t.ClusterIPs) && slices.Equal(s.ExternalIPs, t.ExternalIPs) && slices.Equal(s.Ingress, t.Ingress) &&
		slices.Equal(s.Ports, t.Ports) && s.AffinitySeconds == t.AffinitySeconds && s.InternalLocal == t.InternalLocal &&
		s.ExternalLocal == t.ExternalLocal && s.HealthCheckPort == t.HealthCheckPort && slices.Equal(s.SourceRanges, t.SourceRanges) &&
		s.PublishNotReady == t.PublishNotReady && s.HealthCheck == t.HealthCheck
}

// ReachedLocally tells whether clients from outside of the cluster reach the
// service at nodes, and there just the endpoints that are on the same node.
func (s *Service) ReachedLocally() bool {
	return s.ExternalLocal && len(s.ClusterIPs) > 0 && (len(s.ExternalIPs)+len(s.Ingress) > 0 ||
		slices.ContainsFunc(s.Ports, func(p ServicePort) bool { return p.NodePort != 0 }))
}

// Origin is the field of a Service that an address is from.
type Origin string

// The fields.
const (
	FromClusterIPs  Origin = "spec.clusterIPs"
	FromExternalIPs Origin = "spec.externalIPs"
	FromIngress     Origin = "status.loadBalancer.ingress"
)

// Withheld is why a service does not answer on an address that it names.
type Withheld string

// The reasons.
const (
	NotWithheld   Withheld = ""
	ProxyMode     Withheld = "ipMode is Proxy: the load balancer answers on the address, and the cluster leaves it alone"
	SourcesLimits Withheld = "spec.loadBalancerSourceRanges: the nodes' kernels let just these sources in, and send them to the ClusterIPs"
)

// ServiceAddr is an address that a service names.
type ServiceAddr struct {
	Addr     netip.Addr
	Origin   Origin
	Withheld Withheld
}

// Addresses lists the addresses that the service names, each once: under the
// first field of those that have it answer. Without a cluster IP there are none,
// whatever else the service says (Kubernetes API, ServiceSpec.clusterIP: "None").
func (s *Service) Addresses() []ServiceAddr {
	if len(s.ClusterIPs) == 0 {
		return nil
	}
	out := make([]ServiceAddr, 0, len(s.ClusterIPs)+len(s.ExternalIPs)+len(s.Ingress))
	add := func(a ServiceAddr) {
		if !slices.ContainsFunc(out, func(b ServiceAddr) bool {
			return a.Addr == b.Addr && (b.Withheld == NotWithheld || a.Withheld == b.Withheld)
		}) {
			out = append(out, a)
		}
	}
	for _, a := range s.ClusterIPs {
		add(ServiceAddr{a, FromClusterIPs, NotWithheld})
	}
	for _, a := range s.ExternalIPs {
		if len(s.SourceRanges) == 0 || !slices.Contains(s.Ingress, Ingress{Addr: a}) { // the load balancer's limits hold there, too
			add(ServiceAddr{a, FromExternalIPs, NotWithheld})
		}
	}
	for _, i := range s.Ingress {
		why := NotWithheld
		switch {
		case i.Proxied:
			why = ProxyMode
		case len(s.SourceRanges) > 0:
			why = SourcesLimits
		}
		add(ServiceAddr{i.Addr, FromIngress, why})
	}
	return out
}

// LocalAt tells whether clients in the cluster have the endpoints of their own
// node only at an address of the service: internalTrafficPolicy is about its
// ClusterIPs.
func (s *Service) LocalAt(a ServiceAddr) bool {
	return s.InternalLocal && a.Origin == FromClusterIPs
}

// OutsidePort is the port of the ClusterIPs to which nodes' kernels lead who
// comes from outside to a port of the service: its own, but with
// internalTrafficPolicy Local, which is not about these, a number that is no
// port of the service, from 65535 down.
func (s *Service) OutsidePort(p ServicePort) uint16 {
	if !s.InternalLocal || !s.fromOutside(p) {
		return p.Port
	}
	number := uint16(math.MaxUint16)
	for _, q := range s.Ports {
		for slices.ContainsFunc(s.Ports, func(r ServicePort) bool { return r.Port == number }) {
			number--
		}
		if q == p {
			break
		}
		number--
	}
	return number
}

// fromOutside tells whether a port can be asked for from outside.
func (s *Service) fromOutside(p ServicePort) bool {
	return p.NodePort != 0 || len(s.ExternalIPs)+len(s.Ingress) > 0
}
