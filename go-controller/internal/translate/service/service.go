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
func (Translator) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindService:
		out := []nb.Owner{Owner(c.Ref.Name)}
		for _, rival := range c.Rivals {
			out = append(out, Owner(rival))
		}
		return out
	case cluster.KindEndpointSlice:
		var out []nb.Owner
		for _, o := range []cluster.Object{c.Old, c.New} {
			if e, ok := o.(*cluster.EndpointSlice); ok && e.Service != "" {
				out = append(out, Owner(cluster.Name{Namespace: e.Name.Namespace, Name: e.Service}))
			}
		}
		return slices.Compact(out)
	}
	return nil
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
		vips := vips(s, svc, proto, eps)
		if len(vips) == 0 {
			continue
		}
		rows = append(rows, t.loadBalancer(o, svc, proto, vips))
	}
	return rows, nil
}

// vips maps "address:port" of every VIP of the protocol that the service has to
// its backends, "" for none (ovn-nb(5), Load_Balancer vips).
func vips(s *cluster.State, svc *cluster.Service, proto cluster.Protocol, eps []*cluster.EndpointSlice) map[string]string {
	out := map[string]string{}
	addrs := svc.Addresses()
	for _, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, is4 := range []bool{true, false} {
			var held []netip.AddrPort
			for _, a := range addrs {
				vip := cluster.VIP{Addr: netip.AddrPortFrom(a.Addr, port.Port), Protocol: proto}
				if a.Addr.Is4() == is4 && a.Withheld == cluster.NotWithheld && s.Holder(vip) == svc {
					held = append(held, vip.Addr)
				}
			}
			if len(held) == 0 {
				continue
			}
			backends := text(cluster.Choose(port, is4, eps).Backends)
			for _, vip := range held {
				out[vip.String()] = backends
			}
		}
	}
	return out
}

func (t Translator) loadBalancer(o nb.Owner, svc *cluster.Service, proto cluster.Protocol, vips map[string]string) nb.Row {
	role := names.RoleLoadBalancer + "-" + strings.ToLower(string(proto))
	protocol := strings.ToLower(string(proto))
	return t.Schema.NewRow(nb.Key{Table: nbdb.LoadBalancerTable, Owner: o, Role: role}, &nbdb.LoadBalancer{
		UUID:     names.RowUUID(nbdb.LoadBalancerTable, o.Kind, o.Name, role, svc.UID),
		Name:     names.LoadBalancer(svc.Name.Namespace, svc.Name.Name, string(proto)),
		Protocol: &protocol, Vips: vips,
		Options:         options(svc),
		SelectionFields: selectionFields(svc),
	}, nb.Slot{
		In:     nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: names.ClusterRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup)},
		Column: "load_balancer",
	})
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
