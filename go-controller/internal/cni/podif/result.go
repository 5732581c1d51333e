package podif

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Routes returns the routes that Add gives a pod, in CNI's form.
func Routes(n annotation.PodNetwork) []*types.Route {
	var out []*types.Route
	for _, r := range routes(n) {
		out = append(out, &types.Route{Dst: *ipNet(r.Dest), GW: r.NextHop.AsSlice()})
	}
	return out
}

// ReadResult sets s.Network from the result of an ADD, in which index is that of the container's interface. It takes
// only the routes whose next hop is in a subnet of the interface: other plugins of a chain may have added theirs.
func ReadResult(s *Spec, result *types100.Result, index int) error {
	mac, err := net.ParseMAC(result.Interfaces[index].Mac)
	if err != nil || len(mac) != len(s.Network.MAC) {
		return fmt.Errorf("MAC %q of %s is not an Ethernet address", result.Interfaces[index].Mac, s.IfName)
	}
	copy(s.Network.MAC[:], mac)
	for _, ip := range result.IPs {
		if ip.Interface == nil || *ip.Interface != index {
			continue
		}
		a, ok := netip.AddrFromSlice(ip.Address.IP)
		ones, _ := ip.Address.Mask.Size()
		if !ok {
			return fmt.Errorf("address %q is not an IP address", ip.Address.String())
		}
		s.Network.IPs = append(s.Network.IPs, netip.PrefixFrom(a.Unmap(), ones))
	}
	for _, r := range result.Routes {
		hop, ok := netip.AddrFromSlice(r.GW)
		dst, okDst := netip.AddrFromSlice(r.Dst.IP)
		ones, _ := r.Dst.Mask.Size()
		hop = hop.Unmap()
		if ok && okDst && slices.ContainsFunc(s.Network.IPs, func(p netip.Prefix) bool { return p.Contains(hop) }) {
			route := annotation.Route{Dest: netip.PrefixFrom(dst.Unmap(), ones), NextHop: hop}
			s.Network.Routes = append(s.Network.Routes, route)
		}
	}
	return nil
}
