package cluster

import "net/netip"

// VIP is what a client of a service connects to.
type VIP struct {
	Addr     netip.AddrPort
	Protocol Protocol
}

// String is "10.96.0.1:80/TCP".
func (v VIP) String() string { return v.Addr.String() + "/" + string(v.Protocol) }

// VIPs lists what clients of the service may connect to, in no order: every port on every address at which OVN or the
// nodes' kernels answer, and the OutsidePorts of the ClusterIPs.
func (s *Service) VIPs() []VIP {
	var out []VIP
	for _, a := range s.Addresses() {
		if a.Withheld == ProxyMode {
			continue
		}
		for _, p := range s.Ports {
			out = append(out, VIP{netip.AddrPortFrom(a.Addr, p.Port), p.Protocol})
			if n := s.OutsidePort(p); n != p.Port && a.Origin == FromClusterIPs {
				out = append(out, VIP{netip.AddrPortFrom(a.Addr, n), p.Protocol})
			}
		}
	}
	return out
}
