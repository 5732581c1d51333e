package kinds

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Reasons of Problems with services.
const (
	reasonServiceType   = "InvalidServiceType"
	reasonTrafficPolicy = "InvalidTrafficPolicy"
	reasonServicePort   = "InvalidServicePort"
	reasonHealthPort    = "InvalidHealthCheckNodePort"
	reasonClusterIP     = "InvalidClusterIP"
	reasonExternalIP    = "InvalidExternalIP"
	reasonIngress       = "InvalidLoadBalancerIngress"
	reasonSourceRange   = "InvalidLoadBalancerSourceRange"
	reasonNoPorts       = "NoServicePorts"
	reasonAffinity      = "InvalidSessionAffinity"
)

// serviceDecoder is a service being decoded.
type serviceDecoder struct {
	findings
	spec *corev1.ServiceSpec
	out  *cluster.Service
}

// labelServiceProxy names the proxy that serves a service instead of us (Kubernetes API, "Well-Known Labels,
// Annotations and Taints").
const labelServiceProxy = "service.kubernetes.io/service-proxy-name"

// decodeService takes what the API documents of a service's network. A service that is ExternalName or headless, or has
// no cluster IP yet, has no virtual address. Of an ExternalName service, or one that another proxy serves, nothing else
// is read.
func decodeService(s *corev1.Service) (*cluster.Service, []cluster.Problem) {
	d := serviceDecoder{findings: findingsOf(cluster.KindService, s), spec: &s.Spec, out: &cluster.Service{
		Name: NameOf(s), UID: string(s.UID), Created: createdAt(s),
		Type: cmp.Or(cluster.ServiceType(s.Spec.Type), cluster.ClusterIP), // the API server's default
	}}
	if d.out.Type == cluster.ExternalName {
		return d.out, nil
	}
	if proxy, labelled := s.Labels[labelServiceProxy]; labelled {
		d.out.Proxied, d.out.Proxy = true, proxy
		return d.out, nil
	}
	known(&d.findings, reasonServiceType, "spec.type", d.out.Type, "the addresses and ports that it has are served",
		cluster.ClusterIP, cluster.NodePort, cluster.LoadBalancer, cluster.ExternalName)
	d.out.Headless = s.Spec.ClusterIP == corev1.ClusterIPNone
	d.out.PublishNotReady = s.Spec.PublishNotReadyAddresses
	d.policies()
	d.addresses()
	if d.out.Type == cluster.LoadBalancer {
		d.ingress(s.Status.LoadBalancer.Ingress)
		d.sourceRanges()
	}
	d.affinity()
	if !d.out.Headless {
		d.ports()
	}
	d.healthCheck(s.Annotations)
	return d.out, d.problems
}

func (d *serviceDecoder) policies() {
	internal, external := deref(d.spec.InternalTrafficPolicy), d.spec.ExternalTrafficPolicy
	known(&d.findings, reasonTrafficPolicy, "spec.internalTrafficPolicy", internal, "Cluster is used",
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	known(&d.findings, reasonTrafficPolicy, "spec.externalTrafficPolicy", external, "Cluster is used",
		corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	d.out.InternalLocal = internal == corev1.ServiceInternalTrafficPolicyLocal
	d.out.ExternalLocal = external == corev1.ServiceExternalTrafficPolicyLocal
	if d.out.ExternalLocal {
		d.out.HealthCheckPort = portNumber(d.spec.HealthCheckNodePort)
		if d.out.HealthCheckPort == 0 && d.spec.HealthCheckNodePort != 0 {
			d.bad(reasonHealthPort, "spec.healthCheckNodePort: %d, want a number from 1 to 65535: nodes do not tell load "+
				"balancers whether they have endpoints", d.spec.HealthCheckNodePort)
		}
	}
}

func (d *serviceDecoder) addresses() {
	if d.out.Headless {
		return
	}
	ips := d.spec.ClusterIPs
	if len(ips) == 0 && d.spec.ClusterIP != "" {
		ips = []string{d.spec.ClusterIP}
	}
	for _, ip := range ips {
		if a, why := virtualAddr(ip); why == "" {
			d.out.ClusterIPs = append(d.out.ClusterIPs, a)
		} else {
			d.bad(reasonClusterIP, "spec.clusterIPs: %q %s: the service gets no load balancer for it", ip, why)
		}
	}
	for _, ip := range d.spec.ExternalIPs {
		if a, why := virtualAddr(ip); why == "" {
			d.out.ExternalIPs = append(d.out.ExternalIPs, a)
		} else {
			d.bad(reasonExternalIP, "spec.externalIPs: %q %s: the service does not answer on it", ip, why)
		}
	}
	slices.SortFunc(d.out.ExternalIPs, netip.Addr.Compare)
	d.out.ExternalIPs = slices.Compact(d.out.ExternalIPs)
}

// virtualAddr reads an address that clients connect to; why says what is wrong with it. An address that the API server
// refuses as an external IP is refused for all uses.
func virtualAddr(text string) (a netip.Addr, why string) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return a, "is not an IP address"
	}
	a = a.Unmap()
	if !a.IsGlobalUnicast() {
		return a, "is unspecified, loopback, multicast, broadcast or link-local, want an address that packets can be " +
			"sent to from elsewhere"
	}
	return a, ""
}

// ingress takes the addresses of the load balancer outside of the cluster.
func (d *serviceDecoder) ingress(ingress []corev1.LoadBalancerIngress) {
	for _, i := range ingress {
		if i.IP == "" {
			continue // a host name: for DNS
		}
		a, why := virtualAddr(i.IP)
		if why != "" {
			d.bad(reasonIngress, "status.loadBalancer.ingress: %q %s: the service does not answer on it", i.IP, why)
			continue
		}
		mode := deref(i.IPMode)
		known(&d.findings, reasonIngress, "status.loadBalancer.ingress: ipMode of "+i.IP, mode, "VIP is used",
			corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPModeProxy)
		d.out.Ingress = append(d.out.Ingress, cluster.Ingress{Addr: a, Proxied: mode == corev1.LoadBalancerIPModeProxy})
	}
	slices.SortFunc(d.out.Ingress, func(x, y cluster.Ingress) int {
		if c := x.Addr.Compare(y.Addr); c != 0 || x.Proxied == y.Proxied {
			return c
		}
		if x.Proxied {
			return 1
		}
		return -1
	})
	d.out.Ingress = slices.Compact(d.out.Ingress)
}

// sourceRanges takes which clients may use the addresses of the load balancer outside of the cluster.
func (d *serviceDecoder) sourceRanges() {
	for _, text := range d.spec.LoadBalancerSourceRanges {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			d.bad(reasonSourceRange, "spec.loadBalancerSourceRanges: %q is not a CIDR such as 192.0.2.0/24: "+
				"it lets nobody in", text)
			p = netip.Prefix{}
		}
		d.out.SourceRanges = append(d.out.SourceRanges, p.Masked())
	}
	slices.SortFunc(d.out.SourceRanges, func(x, y netip.Prefix) int { return strings.Compare(x.String(), y.String()) })
	d.out.SourceRanges = slices.Compact(d.out.SourceRanges)
}

// The bounds and the default of sessionAffinityConfig.clientIP.timeoutSeconds (Kubernetes API, ClientIPConfig).
const (
	defaultAffinity = 10800
	maxAffinity     = 86400
)

func (d *serviceDecoder) affinity() {
	known(&d.findings, reasonAffinity, "spec.sessionAffinity", d.spec.SessionAffinity, "None is used",
		corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	if d.spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return
	}
	d.out.AffinitySeconds = defaultAffinity
	c := d.spec.SessionAffinityConfig
	if c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return
	}
	if s := *c.ClientIP.TimeoutSeconds; s >= 1 && s <= maxAffinity {
		d.out.AffinitySeconds = int(s)
	} else {
		d.bad(reasonAffinity, "spec.sessionAffinityConfig.clientIP.timeoutSeconds: %d, want 1 to %d: %d is used",
			s, maxAffinity, defaultAffinity)
	}
}

func (d *serviceDecoder) ports() {
	type key struct {
		cluster.Protocol
		number int32
	}
	seen := make(map[key]string, len(d.spec.Ports))
	for _, p := range d.spec.Ports {
		proto, ok := protocol(p.Protocol)
		if !ok || portNumber(p.Port) == 0 {
			d.bad(reasonServicePort, "spec.ports: port %d/%s: want a number from 1 to 65535 and TCP, UDP or SCTP: "+
				"the port is left out", p.Port, proto)
			continue
		}
		if first, twice := seen[key{proto, p.Port}]; twice {
			d.bad(reasonServicePort, "spec.ports: port %d/%s is already port %q, want a number once per protocol: "+
				"port %q is left out", p.Port, proto, first, p.Name)
			continue
		}
		seen[key{proto, p.Port}] = p.Name
		if p.NodePort != 0 && portNumber(p.NodePort) == 0 {
			d.bad(reasonServicePort, "spec.ports: nodePort %d of port %d/%s: want a number from 1 to 65535: "+
				"the port has no node port", p.NodePort, p.Port, proto)
		}
		d.out.Ports = append(d.out.Ports, cluster.ServicePort{
			Name: p.Name, Protocol: proto, Port: uint16(p.Port), NodePort: portNumber(p.NodePort),
		})
	}
	if len(d.out.Ports) == 0 && len(d.out.ClusterIPs) > 0 {
		d.bad(reasonNoPorts, "spec.ports: no valid port, want at least one: the service gets no load balancer")
	}
}

// portNumber is a port number, or 0 when n is none.
func portNumber(n int32) uint16 {
	if n < 1 || n > 65535 {
		return 0
	}
	return uint16(n)
}

// protocol reads a protocol; none means TCP. For an unknown one ok is false, and p is returned.
func protocol(p corev1.Protocol) (cluster.Protocol, bool) {
	out := cmp.Or(cluster.Protocol(p), cluster.TCP)
	return out, slices.Contains(cluster.Protocols(), out)
}
