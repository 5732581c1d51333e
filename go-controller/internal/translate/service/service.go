package service

import (
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

// hairpinSNAT is the source address that a pod sees when it reaches itself
// through a service, one per family (ovn-nb(5), Load_Balancer
// options:hairpin_snat_ip).
const hairpinSNAT = "169.254.169.5 fd69::5"

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
		Kinds:    []cluster.Kind{cluster.KindService, cluster.KindEndpointSlice, cluster.KindNode},
		Subjects: []cluster.Subject{index.HealthSource},
	}
}

// Affected implements translate.Translator.
func (Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindService:
		return owners(append([]cluster.Name{c.Ref.Name}, c.About(index.VIPHolder)...))
	case cluster.KindEndpointSlice:
		var of []cluster.Name
		for _, o := range []cluster.Object{c.Old, c.New} {
			if e, ok := o.(*cluster.EndpointSlice); ok && e.Service != "" {
				of = append(of, cluster.Name{Namespace: e.Name.Namespace, Name: e.Service})
			}
		}
		return owners(slices.Compact(of))
	case cluster.KindNode:
		of := append(near(s, c), repliers(s, c)...)
		if c.Granted {
			of = append(of, index.HealthChecksOf(s).CheckedOn(s, c.Ref.Name.Name)...)
		}
		return owners(of)
	default: // a pod got the address that checks come from, or gave it back
		return owners(index.HealthChecksOf(s).Checked())
	}
}

func owners(services []cluster.Name) []nb.Owner {
	var out []nb.Owner
	for _, n := range services {
		out = append(out, Owner(n))
	}
	return out
}

// near lists the services that may have other rows after a change of a node.
// Those with hints for zones depend on which zones there are. Those with hints
// for nodes list other nodes' switches, too; those of internalTrafficPolicy Local
// list the switches of nodes with endpoints.
func near(s *cluster.State, c cluster.Change) []cluster.Name {
	var out []cluster.Name
	services := index.ServicesOf(s)
	if c.Concerns(index.ZoneInUse) {
		out = append(out, services.ZoneHinted()...)
	}
	if !c.Concerns(index.NodeSwitch) {
		return out
	}
	return slices.Concat(out, services.NodeHinted(), services.InternalLocalOn(s, c.Ref.Name.Name))
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	svc := s.Services[cluster.ParseName(o.Name)]
	if svc == nil || len(svc.ClusterIPs) == 0 {
		return translate.Rows{}, nil
	}
	out := translate.Rows{Reports: lostVIPs(s, svc)}
	eps := s.SlicesOf(svc.Name)
	for _, proto := range cluster.Protocols() {
		for _, p := range places(s, answers(s, svc, proto, eps)) {
			out.Rows = append(out.Rows, t.checked(s, svc, t.loadBalancer(o, svc, proto, p))...)
		}
	}
	replies, err := t.replies(s, o, svc, eps)
	out.Rows = append(out.Rows, replies...)
	return out, err
}

// answers is every VIP of the protocol that the service has, with who answers
// there.
func answers(s *cluster.State, svc *cluster.Service, proto cluster.Protocol, eps []*cluster.EndpointSlice) []answer {
	var out []answer
	addrs, holders := svc.Addresses(), index.VIPsOf(s)
	for _, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, is4 := range []bool{true, false} {
			made := map[bool]*cluster.Choice{}
			add := func(a netip.Addr, number uint16, local bool) {
				vip := cluster.VIP{Addr: netip.AddrPortFrom(a, number), Protocol: proto}
				if holders.Holder(vip) != svc {
					return
				}
				if made[local] == nil {
					c := cluster.ChooseFor(local, port, is4, eps)
					made[local] = &c
				}
				out = append(out, answer{vip.Addr, *made[local]})
			}
			for _, a := range addrs {
				if a.Addr.Is4() != is4 || a.Withheld != cluster.NotWithheld {
					continue
				}
				add(a.Addr, port.Port, svc.LocalAt(a))
				if n := svc.OutsidePort(port); n != port.Port && a.Origin == cluster.FromClusterIPs {
					add(a.Addr, n, false)
				}
			}
		}
	}
	return out
}

func (t Translator) loadBalancer(o nb.Owner, svc *cluster.Service, proto cluster.Protocol, p placed) nb.Row {
	protocol := strings.ToLower(string(proto))
	role := names.RoleLoadBalancer + "-" + protocol
	if p.place != everywhere {
		role += "-" + p.place
	}
	return t.Schema.NewRow(nb.Key{Table: nbdb.LoadBalancerTable, Owner: o, Role: role}, &nbdb.LoadBalancer{
		UUID:     names.RowUUID(nbdb.LoadBalancerTable, o.Kind, o.Name, role, svc.UID),
		Name:     names.LoadBalancer(svc.Name.Namespace, svc.Name.Name, string(proto), p.place),
		Protocol: &protocol, Vips: p.vips,
		Options:         options(svc, proto),
		SelectionFields: selectionFields(svc),
	}, p.slots...)
}

// text is backends in the form of ovn-nb(5) Load_Balancer vips,
// "address:port,...".
func text(backends []netip.AddrPort) string {
	var b strings.Builder
	for i, a := range backends {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.String())
	}
	return b.String()
}
