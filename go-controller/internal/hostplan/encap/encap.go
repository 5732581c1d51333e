package encap

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// What Geneve costs, in bytes: the outer IP header (20 or 40), UDP (8, RFC
// 768), Geneve (8, RFC 8926), OVN's one option (8, ovn-architecture(7),
// "Tunnel Encapsulations") and the inner Ethernet header (14).
const (
	overheadV4 = 20 + 8 + 8 + 8 + 14
	overheadV6 = overheadV4 + 20
)

// Overhead is how many bytes smaller than the tunnel interface's MTU the MTU
// of pods must be. With addresses of both families the larger one counts.
func Overhead(encapIPs []netip.Addr) int {
	for _, a := range encapIPs {
		if a.Is6() {
			return overheadV6
		}
	}
	return overheadV4
}

// MTU is the MTU of pods and of the management port in bytes: what is
// configured, else what is left of the tunnel interface's.
func MTU(f hostplan.Facts, c config.Node) (int, error) {
	if c.MTU != 0 {
		return c.MTU, nil
	}
	if f.EncapMTU == 0 {
		return 0, errors.New("the tunnel interface's MTU is unknown: give --mtu, or an --encap-ip that is on an interface of this node")
	}
	mtu := f.EncapMTU - Overhead(f.EncapIPs)
	check := c
	check.MTU = mtu
	if mtu <= 0 || check.Validate() != nil {
		return 0, fmt.Errorf("the tunnel interface's MTU of %d leaves %d for pods, which is too little: raise it, or give --mtu", f.EncapMTU, mtu)
	}
	return mtu, nil
}

// Plan is the Open_vSwitch row's keys and the integration bridge. Without a
// tunnel address it fails.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if len(f.EncapIPs) == 0 {
		return hostplan.Plan{}, errors.New("no tunnel address: give --encap-ip, or an InternalIP in the Node's status")
	}
	ids := map[string]string{
		names.OVSSystemID:  SystemID(f, c),
		names.OVSHostname:  c.Name,
		names.OVSEncapType: c.EncapType,
		names.OVSEncapIP:   join(f.EncapIPs),
		// ovn-controller makes br-int itself when it comes first, of this type.
		names.OVSBridgeDatapath: "",
	}
	if c.DatapathType != config.DatapathSystem {
		ids[names.OVSBridgeDatapath] = c.DatapathType
	}
	if c.SBAddress != "" {
		ids[names.OVSRemote] = c.SBAddress
	}
	if len(c.BridgeMappings) > 0 {
		ids[names.OVSBridgeMappings] = join(c.BridgeMappings)
	}
	bridge := hostplan.Bridge{Name: names.IntegrationBridge, FailMode: "secure", DatapathType: c.DatapathType}
	return hostplan.Plan{OVS: hostplan.OVS{ExternalIDs: ids, Bridges: []hostplan.Bridge{bridge}}}, nil
}

// SystemID is the chassis name: the one that OVS has, else one derived from
// the node's name.
func SystemID(f hostplan.Facts, c config.Node) string {
	if f.SystemID != "" {
		return f.SystemID
	}
	return names.SystemID(c.Name)
}

func join[T fmt.Stringer](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return strings.Join(out, ",")
}
