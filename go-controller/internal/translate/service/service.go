package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// hairpinSNAT is the source address that a pod sees when it reaches itself through a service, one per family.
const hairpinSNAT = names.HairpinSNAT4 + " " + names.HairpinSNAT6

// Translator translates services.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindService }

// Owner is the owner of a service's rows.
func Owner(n cluster.Name) nb.Owner { return nb.Owner{Kind: names.KindService, Name: n.String()} }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindService, s.Services, cluster.Name.String)
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds: []cluster.Kind{cluster.KindService, cluster.KindEndpointSlice, cluster.KindNode, cluster.KindPod,
			cluster.KindNetworkDefinition, cluster.KindUserNetwork, cluster.KindClusterUserNetwork},
		Subjects: []cluster.Subject{index.HealthSource, index.AddressTaken, index.GatewayExists,
			index.PrimaryOf},
	}
}

// Affected implements translate.Translator.
func (Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	of := slices.Concat(c.About(index.AddressTaken), withoutGateways(s, c), ofPrimaries(s, c), ofExits(s, c))
	switch c.Ref.Kind {
	case cluster.KindService:
		return owners(append(append(of, c.Ref.Name), c.About(index.VIPHolder)...))
	case cluster.KindEndpointSlice:
		for _, o := range []cluster.Object{c.Old, c.New} {
			if e, ok := o.(*cluster.EndpointSlice); ok && e.Service != "" {
				of = append(of, cluster.Name{Namespace: e.Name.Namespace, Name: e.Service})
			}
		}
		return owners(slices.Compact(of))
	case cluster.KindNode:
		of = slices.Concat(of, withOtherBackends(s, c), withOtherReplies(s, c))
		if c.Granted {
			of = append(of, index.HealthChecksOf(s).CheckedOn(s, c.Ref.Name.Name)...)
		}
		return owners(of)
	}
	if c.Concerns(index.HealthSource) { // a pod gained or lost the address that health checks come from
		of = append(of, index.HealthChecksOf(s).Checked()...)
	}
	return owners(of)
}

// ofPrimaries lists the services that are affected by a change of primary networks: those of namespaces whose primary
// network is another now, or is defined otherwise, and those with an endpoint that gained or lost an address.
func ofPrimaries(s *cluster.State, c cluster.Change) (out []cluster.Name) {
	for _, namespace := range c.About(index.PrimaryOf) {
		out = append(out, s.ServicesIn(namespace.Name)...)
	}
	switch {
	case c.Ref.Kind == cluster.KindPod && c.Granted:
		out = append(out, s.ServicesOfPod(c.Ref.Name)...)
	case c.Ref.Kind.Defines():
		n := names.Defined(c.Ref.Name.Namespace, c.Ref.Name.Name)
		for _, namespace := range index.PrimariesOf(s).In(n) {
			if !slices.Contains(c.About(index.PrimaryOf), cluster.Name{Name: namespace}) {
				out = append(out, s.ServicesIn(namespace)...)
			}
		}
	}
	return out
}

func owners(services []cluster.Name) []nb.Owner {
	var out []nb.Owner
	for _, n := range services {
		out = append(out, Owner(n))
	}
	return out
}

// withOtherBackends lists the services whose load balancers may change with a node. Those with hints for zones depend
// on which zones have nodes. The load balancers of services with hints for nodes are listed by all switches; those of
// services with internalTrafficPolicy Local, by the switches of nodes with endpoints.
func withOtherBackends(s *cluster.State, c cluster.Change) []cluster.Name {
	var out []cluster.Name
	services := index.ServicesOf(s)
	if c.Concerns(index.ZoneInUse) {
		out = services.ZoneHinted()
	}
	if c.Concerns(index.NodeSwitch) {
		out = slices.Concat(out, services.NodeHinted(), services.InternalLocalOn(s, c.Ref.Name.Name))
	}
	return out
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	svc := s.Services[cluster.ParseName(o.Name)]
	if svc == nil || len(svc.ClusterIPs) == 0 {
		return translate.Rows{}, nil
	}
	n, why := s.ServedIn(svc)
	if n == nil {
		return translate.Rows{Reports: unserved(svc, why)}, nil
	}
	r := serviceRows{Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: svc.UID}, svc: svc, state: s, network: n}
	r.addrs = svc.AddressesIn(n, s.Config.Services, index.TakenOf(s))
	all, _ := s.SlicesIn(n, svc.Name)
	eps, left := svc.Within(s.Config.Services, all)
	out := translate.Rows{Reports: slices.Concat(lostVIPs(s, svc, r.addrs), refused(svc, r.addrs),
		overLimits(s.Config.Services, svc, left), partly(n, svc, r.addrs))}
	for _, proto := range cluster.Protocols() {
		for _, p := range placements(s, n, r.choices(proto, eps)) {
			out.Rows = append(out.Rows, r.loadBalancer(proto, p, eps)...)
		}
	}
	var fromOutside []nb.Row
	var err error
	switch {
	case n.Hosts:
		fromOutside, err = r.replies(eps)
	case svc.ByExits(s.Config.Services):
		fromOutside, err = r.byExits(s.ExitSlices(n, svc, eps), eps)
	}
	out.Rows = append(out.Rows, fromOutside...)
	return out, err
}

// serviceRows makes the rows of one service.
type serviceRows struct {
	translate.Maker
	svc     *cluster.Service
	addrs   []cluster.ServiceAddr
	state   *cluster.State
	network *cluster.Network // in which clients reach the service
}

// choices lists every VIP of the protocol that the service has, with its backends.
func (r serviceRows) choices(proto cluster.Protocol, eps []*cluster.EndpointSlice) []choice {
	var out []choice
	svc, holders := r.svc, index.VIPsOf(r.state)
	outside := svc.OutsidePorts()
	for i, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, is4 := range []bool{true, false} {
			made := map[bool]*cluster.Choice{} // by whether clients get only their node's endpoints
			add := func(a netip.Addr, number uint16, local bool) {
				vip := cluster.VIP{Addr: netip.AddrPortFrom(a, number), Protocol: proto}
				if holders.Holder(vip) != svc {
					return
				}
				if made[local] == nil {
					c := cluster.ChooseFor(local, port, is4, eps)
					made[local] = &c
				}
				out = append(out, choice{vip.Addr, *made[local]})
			}
			for _, a := range r.addrs {
				if a.Addr.Is4() != is4 || a.Withheld != cluster.NotWithheld {
					continue
				}
				add(a.Addr, port.Port, svc.LocalAt(a))
				if n := outside[i]; n != port.Port && a.Origin == cluster.FromClusterIPs {
					add(a.Addr, n, false)
				}
			}
		}
	}
	return out
}

// loadBalancer is a load balancer and its health checks.
func (r serviceRows) loadBalancer(proto cluster.Protocol, p placement, eps []*cluster.EndpointSlice) []nb.Row {
	role, lb := r.balancer(proto, p)
	checks := r.healthChecks(proto, role, lb, eps)
	return append([]nb.Row{r.Row(role, lb, p.slots...)}, checks...)
}

// balancer is a load balancer, and its role.
func (r serviceRows) balancer(proto cluster.Protocol, p placement) (role string, lb *nbdb.LoadBalancer) {
	protocol := strings.ToLower(string(proto))
	role = names.RoleLoadBalancer + "-" + protocol
	if p.scope != allNodes {
		role += "-" + p.scope
	}
	return role, &nbdb.LoadBalancer{
		Name:     names.LoadBalancer(r.svc.Name.Namespace, r.svc.Name.Name, string(proto), p.scope),
		Protocol: &protocol, Vips: p.vips, Options: options(r.svc, proto), SelectionFields: selectionFields(r.svc),
	}
}

// joined is values as text with a separator between them.
func joined[T fmt.Stringer](values []T, separator string) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(v.String())
	}
	return b.String()
}
