package cluster

import (
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

	// Cut is how many classes of VIPs are not served for the limit of its namespace: external addresses first, then node
	// ports, then ClusterIPs. It is not the author's, but follows from the other services there.
	Cut int
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
		s.Cut == t.Cut && slices.Equal(s.ClusterIPs, t.ClusterIPs) && slices.Equal(s.ExternalIPs, t.ExternalIPs) &&
		slices.Equal(s.Ingress, t.Ingress) && slices.Equal(s.Ports, t.Ports) && slices.Equal(s.SourceRanges, t.SourceRanges)
}

// LocalFromOutside is true when clients outside the cluster can reach the service and, by externalTrafficPolicy Local,
// get only the endpoints on the node that they reach it at.
func (s *Service) LocalFromOutside() bool {
	return s.ExternalLocal && len(s.ClusterIPs) > 0 && (len(s.ExternalIPs)+len(s.Ingress) > 0 || s.hasNodePorts())
}

// hasNodePorts is true when any port of the service has a node port.
func (s *Service) hasNodePorts() bool {
	return slices.ContainsFunc(s.Ports, func(p ServicePort) bool { return p.NodePort != 0 })
}
