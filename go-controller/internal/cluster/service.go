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

// The types. What a service needs from the network follows from its addresses and ports, not from its type.
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

// Ingress is an address of the external load balancer of a service (status.loadBalancer.ingress). An entry that has
// only a host name is left out.
type Ingress struct {
	Addr netip.Addr
	// Proxied is true when the load balancer itself answers on the address and connects to nodes or pods (ipMode Proxy).
	// OVN then has nothing to do with packets to the address.
	Proxied bool
}

// Service is a Kubernetes service, with the fields that matter to the network. ports.targetPort is left out: the
// EndpointSlices say which ports it means.
type Service struct {
	Name        Name
	UID         string
	Created     int64 // creation time, Unix seconds: when two services claim one address, the older has it
	Type        ServiceType
	Headless    bool   // clusterIP None: no virtual address
	Proxied     bool   // another proxy serves it (label service-proxy-name): the fields below are empty
	Proxy       string // the name of that proxy
	ClusterIPs  []netip.Addr
	ExternalIPs []netip.Addr // sorted
	Ingress     []Ingress    // sorted; only for type LoadBalancer
	Ports       []ServicePort

	AffinitySeconds int  // sessionAffinity ClientIP: how long a client keeps its backend; 0 for None
	InternalLocal   bool // internalTrafficPolicy Local
	ExternalLocal   bool // externalTrafficPolicy Local
	HealthCheckPort uint16
	// SourceRanges are the clients that may use the Ingress addresses, sorted; none admits everybody. A range that can't
	// be parsed is the zero Prefix, which contains nobody.
	SourceRanges    []netip.Prefix
	HealthCheck     annotation.HealthCheck // OVN's health check of the endpoints; the zero value for none
	PublishNotReady bool                   // publishNotReadyAddresses: the endpoint controller marks its endpoints ready
}

// Ref implements Object.
func (s *Service) Ref() Ref { return Ref{KindService, s.Name} }

// Equal implements Object.
func (s *Service) Equal(o Object) bool {
	t, ok := o.(*Service)
	return ok && s.Name == t.Name && s.UID == t.UID && s.Created == t.Created && s.Type == t.Type &&
		s.Headless == t.Headless && s.Proxied == t.Proxied && s.Proxy == t.Proxy &&
		s.AffinitySeconds == t.AffinitySeconds && s.InternalLocal == t.InternalLocal && s.ExternalLocal == t.ExternalLocal &&
		s.HealthCheckPort == t.HealthCheckPort && s.PublishNotReady == t.PublishNotReady && s.HealthCheck == t.HealthCheck &&
		slices.Equal(s.ClusterIPs, t.ClusterIPs) && slices.Equal(s.ExternalIPs, t.ExternalIPs) &&
		slices.Equal(s.Ingress, t.Ingress) && slices.Equal(s.Ports, t.Ports) && slices.Equal(s.SourceRanges, t.SourceRanges)
}

// LocalFromOutside is true when clients outside the cluster can reach the service and, by externalTrafficPolicy Local,
// get only the endpoints on the node that they reach it at.
func (s *Service) LocalFromOutside() bool {
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
	SourcesLimits Withheld = "spec.loadBalancerSourceRanges: the nodes' kernels let just these sources in, " +
		"and send them to the ClusterIPs"
)

// ServiceAddr is an address that a service names.
type ServiceAddr struct {
	Addr     netip.Addr
	Origin   Origin
	Withheld Withheld
}

// Addresses lists the addresses that the service names, each once. When several fields name an address, the first field
// by which the service answers there counts. Without a cluster IP a service has no addresses (Kubernetes API,
// ServiceSpec.clusterIP: "None").
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
		// The limits of the load balancer hold at its address, also when externalIPs name it.
		if len(s.SourceRanges) == 0 || !slices.Contains(s.Ingress, Ingress{Addr: a}) {
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

// LocalAt is true when clients in the cluster get only the endpoints of their own node at an address of the service:
// internalTrafficPolicy Local applies to its ClusterIPs.
func (s *Service) LocalAt(a ServiceAddr) bool {
	return s.InternalLocal && a.Origin == FromClusterIPs
}

// OutsidePort is the port of the ClusterIPs to which the nodes' kernels forward connections from outside to a port of
// the service. It is the port itself. With internalTrafficPolicy Local, which does not apply to connections from
// outside, it is a spare port: the highest ones that the service does not use.
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

// fromOutside is true when clients outside the cluster can connect to a port.
func (s *Service) fromOutside(p ServicePort) bool {
	return p.NodePort != 0 || len(s.ExternalIPs)+len(s.Ingress) > 0
}
