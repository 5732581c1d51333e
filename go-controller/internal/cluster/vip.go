package cluster

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Origin is the field of a Service that an address is from.
type Origin string

// The fields.
const (
	FromClusterIPs  Origin = "spec.clusterIPs"
	FromExternalIPs Origin = "spec.externalIPs"
	FromIngress     Origin = "status.loadBalancer.ingress"
)

// Withheld is why a service does not answer on an address that it names. Besides these reasons there are those of
// Taken and of --external-ip-cidrs.
type Withheld string

// The reasons.
const (
	NotWithheld   Withheld = ""
	ProxyMode     Withheld = "ipMode is Proxy: the load balancer answers on the address, and the cluster leaves it alone"
	SourcesLimits Withheld = "spec.loadBalancerSourceRanges: the nodes' kernels let just these sources in, " +
		"and send them to the ClusterIPs"
	OverLimit Withheld = "the service has more addresses and ports than --max-service-vips allows"
	OverShare Withheld = "the services of its namespace have more addresses and ports than --max-namespace-vips allows"
)

// Served is true when OVN or the nodes' kernels answer.
func (w Withheld) Served() bool { return w == NotWithheld || w == SourcesLimits }

// Refused is true when the address is somebody else's, or not one that the operator allows.
func (w Withheld) Refused() bool {
	return !w.Served() && w != ProxyMode && w != OverLimit && w != OverShare && w != NotInPrimary
}

// ServiceAddr is an address that a service names.
type ServiceAddr struct {
	Addr     netip.Addr
	Origin   Origin
	Withheld Withheld
}

// Addresses lists the addresses that the service names, each once. When several fields name an address, the first field
// by which the service answers there counts. Without a cluster IP a service has no addresses (Kubernetes API,
// ServiceSpec.clusterIP: "None"). Addresses that are taken are withheld; nil stands for none.
func (s *Service) Addresses(c config.Services, t *Taken) []ServiceAddr {
	if len(s.ClusterIPs) == 0 {
		return nil
	}
	all := s.named()
	fits := s.fits(c.MaxVIPs, all)
	for i := range all {
		a := &all[i]
		switch {
		case !a.Withheld.Served():
		case a.Origin == FromClusterIPs && fits < fitClusterIPs, a.Origin != FromClusterIPs && fits < fitAll:
			if a.Withheld = OverLimit; s.Cut > 0 {
				a.Withheld = OverShare
			}
		case a.Origin == FromClusterIPs:
		default:
			a.Withheld = cmp.Or(refusal(a.Addr, c.ExternalCIDRs, t), a.Withheld)
		}
	}
	return all
}

// refusal is why a service may not have an external address, "" when it may. With ranges, only addresses in them are
// allowed.
func refusal(a netip.Addr, ranges []netip.Prefix, t *Taken) Withheld {
	if whose := t.whose(a); whose != "" {
		return Withheld("it is " + whose)
	}
	if len(ranges) == 0 || slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return ""
	}
	return Withheld("it is in none of --external-ip-cidrs " + config.PrefixList(ranges))
}

// named is Addresses without limits.
func (s *Service) named() []ServiceAddr {
	out := make([]ServiceAddr, 0, len(s.ClusterIPs)+len(s.ExternalIPs)+len(s.Ingress))
	if cap(out) == len(s.ClusterIPs) {
		for _, a := range s.ClusterIPs {
			out = append(out, ServiceAddr{a, FromClusterIPs, NotWithheld})
		}
		return out
	}
	seen := make(map[netip.Addr][]Withheld, cap(out))
	add := func(a ServiceAddr) {
		before := seen[a.Addr]
		if !slices.Contains(before, NotWithheld) && !slices.Contains(before, a.Withheld) {
			seen[a.Addr] = append(before, a.Withheld)
			out = append(out, a)
		}
	}
	for _, a := range s.ClusterIPs {
		add(ServiceAddr{a, FromClusterIPs, NotWithheld})
	}
	limited := make(map[netip.Addr]bool)
	for _, i := range s.Ingress {
		limited[i.Addr] = limited[i.Addr] || len(s.SourceRanges) > 0 && !i.Proxied
	}
	for _, a := range s.ExternalIPs {
		// The limits of the load balancer hold at its address, also when externalIPs name it.
		if !limited[a] {
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

// fit is how much of a service is served. Its VIPs are served class by class: ClusterIPs first, then node ports, then
// external addresses. A class that exceeds the limit is not served at all.
type fit int

const (
	fitNothing fit = iota
	fitClusterIPs
	fitNodePorts
	fitAll
)

// fits is how much of the service a limit of VIPs allows, 0 for no limit, without what was cut.
func (s *Service) fits(limit int, named []ServiceAddr) fit {
	if limit == 0 && s.Cut == 0 {
		return fitAll
	}
	return max(fitting(limit, s.count(named))-fit(s.Cut), fitNothing)
}

// fitting is up to which class a limit allows VIPs, 0 for no limit.
func fitting(limit int, vips [fitAll + 1]int) fit {
	f := fitAll
	for limit != 0 && f > fitNothing && vips[f] > limit {
		f--
	}
	return f
}

// count is how many VIPs the service has up to a class. A node port counts once for each ClusterIP. An address that
// only some sources may use counts once more for each of the source ranges.
func (s *Service) count(named []ServiceAddr) (vips [fitAll + 1]int) {
	ports, nodePorts := len(s.Ports), 0
	for _, p := range s.Ports {
		if p.NodePort != 0 {
			nodePorts++
		}
	}
	vips[fitClusterIPs] = len(s.ClusterIPs) * ports
	if s.InternalLocal && (nodePorts > 0 || len(s.ExternalIPs)+len(s.Ingress) > 0) {
		vips[fitClusterIPs] *= 2 // OutsidePorts
	}
	vips[fitNodePorts] = vips[fitClusterIPs] + len(s.ClusterIPs)*nodePorts
	vips[fitAll] = vips[fitNodePorts]
	for _, a := range named {
		switch {
		case a.Origin == FromClusterIPs || !a.Withheld.Served():
		case a.Withheld == SourcesLimits:
			vips[fitAll] += ports * (1 + len(s.SourceRanges))
		default:
			vips[fitAll] += ports
		}
	}
	return vips
}

// claim is the VIPs of the classes that the service may have by itself.
func (s *Service) claim(c config.Cluster) claim {
	out := claim{created: s.Created, name: s.Name.Name}
	if len(s.ClusterIPs) == 0 {
		return out
	}
	vips := s.count(s.named())
	for f := fitting(c.Services.MaxVIPs, vips); f > fitNothing; f-- {
		out.costs = append(out.costs, cost{vips[f]})
	}
	return out
}

func (s *Service) lacks() int { return s.Cut }

func (s *Service) lacking(cut int) Object {
	if cut == s.Cut {
		return s
	}
	out := *s
	out.Cut = cut
	return &out
}

func (s *Service) place(state *State, in bool) { state.placeShare(s, in) }

// Excess says by how much the service exceeds the limits of VIPs, and what of it is served; "" when it does not.
func (s *Service) Excess(c config.Services) string {
	named, served := s.named(), "nothing of it is served"
	switch s.fits(c.MaxVIPs, named) {
	case fitAll:
		return ""
	case fitNodePorts:
		served = "only its ClusterIPs and node ports are served"
	case fitClusterIPs:
		served = "only its ClusterIPs are served"
	}
	count, namespace := s.count(named), ""
	var want []string
	if fitting(c.MaxVIPs, count) < fitAll {
		want = append(want, fmt.Sprintf("at most --max-service-vips %d", c.MaxVIPs))
	}
	if s.Cut > 0 {
		want = append(want, fmt.Sprintf("at most --max-namespace-vips %d", c.MaxNamespaceVIPs))
		namespace = ", beside those of older services of namespace " + s.Name.Namespace
	}
	return fmt.Sprintf("spec.ports, spec.externalIPs and status.loadBalancer.ingress: %d addresses x ports%s, want %s: %s",
		count[fitAll], namespace, strings.Join(want, " and "), served)
}

// ServesNodePorts is true when the node ports of the service are within the limit.
func (s *Service) ServesNodePorts(c config.Services) bool {
	return len(s.ClusterIPs) > 0 && s.fits(c.MaxVIPs, s.named()) >= fitNodePorts
}

// endpointShare is for how many VIPs all endpoints that --max-service-endpoints allows serve: a service with more VIPs
// has fewer endpoints, so that the list of backends of all VIPs together is bounded as well.
const endpointShare = 10

// Within is the slices of a service with the endpoints that serve, and how many were left out. In each family, ready
// endpoints come first, then those that serve while they terminate, then by address.
func (s *Service) Within(c config.Services, eps []*EndpointSlice) (kept []*EndpointSlice, left int) {
	if c.MaxEndpoints == 0 {
		return eps, 0
	}
	balanced := 0
	for _, a := range s.Addresses(c, nil) {
		if a.Withheld == NotWithheld {
			balanced += len(s.Ports)
		}
	}
	limit := max(c.MaxEndpoints*endpointShare/max(balanced, endpointShare), 1)
	count := map[bool]int{}
	for _, e := range eps {
		for i := range e.Endpoints {
			count[e.Endpoints[i].Addr.Is4()]++
		}
	}
	left = max(count[true]-limit, 0) + max(count[false]-limit, 0)
	if left == 0 {
		return eps, 0
	}
	return firstEndpoints(eps, limit), left
}

// firstEndpoints is slices with so many endpoints of each family.
func firstEndpoints(eps []*EndpointSlice, limit int) []*EndpointSlice {
	type listed struct {
		slice int
		*Endpoint
	}
	var all []listed
	for i, e := range eps {
		for j := range e.Endpoints {
			all = append(all, listed{i, &e.Endpoints[j]})
		}
	}
	stages := append(Stages(), 0)
	stage := func(e listed) int { return slices.IndexFunc(stages, e.Conditions.Has) }
	slices.SortStableFunc(all, func(a, b listed) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), a.Addr.Compare(b.Addr))
	})
	count, out := map[bool]int{}, make([]*EndpointSlice, len(eps))
	for _, e := range all {
		if is4 := e.Addr.Is4(); count[is4] < limit {
			count[is4]++
			if out[e.slice] == nil {
				of := *eps[e.slice]
				of.Endpoints = nil
				out[e.slice] = &of
			}
			out[e.slice].Endpoints = append(out[e.slice].Endpoints, *e.Endpoint)
		}
	}
	return slices.DeleteFunc(out, func(e *EndpointSlice) bool { return e == nil })
}

// LocalAt is true when clients in the cluster get only the endpoints of their own node at an address of the service:
// internalTrafficPolicy Local applies to its ClusterIPs.
func (s *Service) LocalAt(a ServiceAddr) bool {
	return s.InternalLocal && a.Origin == FromClusterIPs
}

// OutsidePorts is, for each of Ports, the port of the ClusterIPs to which the nodes' kernels forward connections from
// outside. It is the port itself. With internalTrafficPolicy Local, which does not apply to connections from outside,
// it is a spare port: the highest ones that the service does not use.
func (s *Service) OutsidePorts() []uint16 {
	out, used := make([]uint16, len(s.Ports)), map[uint16]bool{}
	for i, p := range s.Ports {
		out[i] = p.Port
		used[p.Port] = s.InternalLocal
	}
	if !s.InternalLocal {
		return out
	}
	external := len(s.ExternalIPs)+len(s.Ingress) > 0
	number := uint16(math.MaxUint16)
	for i, p := range s.Ports {
		for used[number] {
			number--
		}
		if number == 0 {
			break // no port is spare
		}
		if external || p.NodePort != 0 {
			out[i] = number
		}
		number--
	}
	return out
}

// VIP is what a client of a service connects to.
type VIP struct {
	Addr     netip.AddrPort
	Protocol Protocol
}

// String is "10.96.0.1:80/TCP".
func (v VIP) String() string { return v.Addr.String() + "/" + string(v.Protocol) }

// VIPs lists what clients of the service may connect to, in no order: every port on those of its Addresses at which
// OVN or the nodes' kernels answer, and the OutsidePorts of the ClusterIPs.
func (s *Service) VIPs(addresses []ServiceAddr) []VIP {
	var out []VIP
	outside := s.OutsidePorts()
	for _, a := range addresses {
		if !a.Withheld.Served() {
			continue
		}
		for i, p := range s.Ports {
			out = append(out, VIP{netip.AddrPortFrom(a.Addr, p.Port), p.Protocol})
			if n := outside[i]; n != p.Port && a.Origin == FromClusterIPs {
				out = append(out, VIP{netip.AddrPortFrom(a.Addr, n), p.Protocol})
			}
		}
	}
	return out
}
