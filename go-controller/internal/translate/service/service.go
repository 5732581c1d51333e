package service

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
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

// Affected implements translate.Translator.
func (Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindService:
		return owners(append([]cluster.Name{c.Ref.Name}, c.Rivals...))
	case cluster.KindEndpointSlice:
		var of []cluster.Name
		for _, o := range []cluster.Object{c.Old, c.New} {
			if e, ok := o.(*cluster.EndpointSlice); ok && e.Service != "" {
				of = append(of, cluster.Name{Namespace: e.Name.Namespace, Name: e.Service})
			}
		}
		return owners(slices.Compact(of))
	case cluster.KindPod:
		if c.Source {
			return owners(s.Checked())
		}
	case cluster.KindNode:
		of := append(near(s, c), repliers(s, c)...)
		if c.Granted {
			of = append(of, s.CheckedOn(c.Ref.Name.Name)...)
		}
		return owners(of)
	}
	return nil
}

func owners(services []cluster.Name) []nb.Owner {
	var out []nb.Owner
	for _, n := range services {
		out = append(out, Owner(n))
	}
	return out
}

// near lists the services that may have other rows after a change of a node:
// those with hints for zones when there is another zone, or one less; those with
// hints for nodes, which list other nodes' switches too, and those of
// internalTrafficPolicy Local with endpoints on the node, when the node has
// another switch or zone.
func near(s *cluster.State, c cluster.Change) []cluster.Name {
	var out []cluster.Name
	if len(c.Zones) > 0 {
		out = append(out, s.ZoneHinted()...)
	}
	if !c.Moved {
		return out
	}
	return slices.Concat(out, s.NodeHinted(), s.LocalOn(c.Ref.Name.Name))
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) ([]nb.Row, error) {
	svc := s.Services[cluster.ParseName(o.Name)]
	if svc == nil || len(svc.ClusterIPs) == 0 {
		return nil, nil
	}
	eps := s.SlicesOf(svc.Name)
	var rows []nb.Row
	for _, proto := range cluster.Protocols() {
		for _, p := range places(s, answers(s, svc, proto, eps)) {
			rows = append(rows, t.checked(s, svc, t.loadBalancer(o, svc, proto, p))...)
		}
	}
	replies, err := t.replies(s, o, svc, eps)
	if err != nil {
		return nil, err
	}
	return append(rows, replies...), nil
}

// answers is every VIP of the protocol that the service has, with who answers
// there.
func answers(s *cluster.State, svc *cluster.Service, proto cluster.Protocol, eps []*cluster.EndpointSlice) []answer {
	var out []answer
	addrs := svc.Addresses()
	for _, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, is4 := range []bool{true, false} {
			made := map[bool]*cluster.Choice{}
			add := func(a netip.Addr, number uint16, local bool) {
				vip := cluster.VIP{Addr: netip.AddrPortFrom(a, number), Protocol: proto}
				if s.Holder(vip) != svc {
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
