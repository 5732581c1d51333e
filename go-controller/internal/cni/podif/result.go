package podif

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// Routes returns the routes that Add gives a pod, in CNI's form.
func Routes(n annotation.PodNetwork) []*types.Route {
	var out []*types.Route
	for _, r := range routes(n) {
		out = append(out, &types.Route{Dst: *ipnet.IPNet(r.Dest), GW: r.NextHop.AsSlice()})
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
		p, ok := ipnet.OfIPNet(&ip.Address)
		if !ok {
			return fmt.Errorf("address %q is not an IP address", ip.Address.String())
		}
		s.Network.IPs = append(s.Network.IPs, p)
	}
	for _, r := range result.Routes {
		hop := ipnet.OfIP(r.GW)
		dest, ok := ipnet.OfIPNet(&r.Dst)
		if ok && slices.ContainsFunc(s.Network.IPs, func(p netip.Prefix) bool { return p.Contains(hop) }) {
			s.Network.Routes = append(s.Network.Routes, annotation.Route{Dest: dest, NextHop: hop})
		}
	}
	return nil
}
