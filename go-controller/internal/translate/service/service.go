package service

import (
	"net/netip"
	"slices"
	"strconv"
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

func owner(n cluster.Name) nb.Owner { return nb.Owner{Kind: names.KindService, Name: n.String()} }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindService, s.Services, cluster.Name.String)
}

// Affected implements translate.Translator.
func (Translator) Affected(_ *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindService:
		return []nb.Owner{owner(c.Ref.Name)}
	case cluster.KindEndpointSlice:
		var out []nb.Owner
		for _, o := range []cluster.Object{c.Old, c.New} {
			if e, ok := o.(*cluster.EndpointSlice); ok && e.Service != "" {
				out = append(out, owner(cluster.Name{Namespace: e.Name.Namespace, Name: e.Service}))
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
	for _, proto := range []cluster.Protocol{cluster.TCP, cluster.UDP, cluster.SCTP} {
		vips := vips(svc, proto, eps)
		if len(vips) == 0 {
			continue
		}
		rows = append(rows, t.loadBalancer(o, svc, proto, vips))
	}
	return rows, nil
}

// vips maps "address:port" of every port of the protocol to its backends,
// "address:port,..." sorted, the form of ovn-nb(5) Load_Balancer vips.
func vips(svc *cluster.Service, proto cluster.Protocol, eps []*cluster.EndpointSlice) map[string]string {
	out := map[string]string{}
	for _, port := range svc.Ports {
		if port.Protocol != proto {
			continue
		}
		for _, ip := range svc.ClusterIPs {
			vip := netip.AddrPortFrom(ip, port.Port).String()
			out[vip] = strings.Join(backends(port, ip.Is4(), eps), ",")
		}
	}
	return out
}

// backends is the ready endpoints of one service port in one family. Slices
// name the port as the service does, and each says which number that is.
func backends(port cluster.ServicePort, v4 bool, eps []*cluster.EndpointSlice) []string {
	var out []netip.AddrPort
	for _, e := range eps {
		for _, p := range e.Ports {
			if p.Name != port.Name || p.Protocol != port.Protocol {
				continue
			}
			for _, a := range e.Ready {
				if a.Is4() == v4 {
					out = append(out, netip.AddrPortFrom(a, p.Port))
				}
			}
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	out = slices.Compact(out)
	texts := make([]string, len(out))
	for i, b := range out {
		texts[i] = b.String()
	}
	return texts
}

func (t Translator) loadBalancer(o nb.Owner, svc *cluster.Service, proto cluster.Protocol, vips map[string]string) nb.Row {
	role := names.RoleLoadBalancer + "-" + strings.ToLower(string(proto))
	protocol := strings.ToLower(string(proto))
	return t.Schema.NewRow(nb.Key{Table: nbdb.LoadBalancerTable, Owner: o, Role: role}, &nbdb.LoadBalancer{
		UUID:     names.RowUUID(nbdb.LoadBalancerTable, o.Kind, o.Name, role, svc.UID),
		Name:     names.LoadBalancer(svc.Name.Namespace, svc.Name.Name, string(proto)),
		Protocol: &protocol, Vips: vips,
		Options: map[string]string{"hairpin_snat_ip": hairpinSNAT, "reject": strconv.FormatBool(true)},
		// Hashing on the addresses and ports themselves spares the userspace
		// datapath a recirculation, of which it has only a few.
		SelectionFields: []string{"ip_dst", "ip_src", "tp_dst", "tp_src"},
	}, nb.Slot{
		In:     nb.Ref{Table: nbdb.LoadBalancerGroupTable, UUID: names.ClusterRow(nbdb.LoadBalancerGroupTable, names.RoleLBGroup)},
		Column: "load_balancer",
	})
}
