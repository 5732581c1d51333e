package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// addResult appends the interface to the result of earlier plugins (CNI specification 1.1.0, section 5 "ADD Success").
// Name servers are those of the configuration; the kubelet configures those of the cluster itself.
func addResult(conf types.NetConf, prev *types100.Result, spec podif.Spec, veth podif.Veth) *types100.Result {
	out := &types100.Result{}
	if prev != nil {
		out = prev
	}
	mtu := spec.MTU
	if has, err := version.GreaterThanOrEqualTo(conf.CNIVersion, "1.1.0"); err != nil || !has {
		mtu = 0 // the field is new in 1.1.0
	}
	out.Interfaces = append(out.Interfaces,
		&types100.Interface{Name: veth.HostName, Mac: veth.HostMAC.String(), Mtu: mtu},
		&types100.Interface{Name: spec.IfName, Mac: spec.Network.MAC.String(), Mtu: mtu, Sandbox: spec.Netns})
	for _, p := range spec.Network.IPs {
		out.IPs = append(out.IPs, &types100.IPConfig{
			Interface: types100.Int(len(out.Interfaces) - 1),
			Address:   *ipnet.IPNet(p),
			Gateway:   gateway(p, spec.Network.Gateways),
		})
	}
	out.Routes = append(out.Routes, podif.Routes(spec.Network)...)
	out.DNS.Domain = cmp.Or(conf.DNS.Domain, out.DNS.Domain)
	out.DNS.Nameservers = append(out.DNS.Nameservers, conf.DNS.Nameservers...)
	out.DNS.Search = append(out.DNS.Search, conf.DNS.Search...)
	out.DNS.Options = append(out.DNS.Options, conf.DNS.Options...)
	return out
}

// gateway returns the gateway of the address's family, nil if there is none.
func gateway(p netip.Prefix, gateways []netip.Addr) net.IP {
	for _, g := range gateways {
		if g.Is4() == p.Addr().Is4() {
			return g.AsSlice()
		}
	}
	return nil
}

func marshalResult(version string, r *types100.Result) (json.RawMessage, error) {
	converted, err := r.GetAsVersion(version)
	if err != nil {
		return nil, cniError(protocol.CodeInvalidConfig, err.Error(), "giving the result in version %q of CNI", version)
	}
	raw, err := json.Marshal(converted)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return raw, nil
}
