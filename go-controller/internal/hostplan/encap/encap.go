package encap

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// What a tunnel costs, in bytes: the outer IP header, UDP (RFC 768), Geneve
// (RFC 8926) with OVN's one option (ovn-architecture(7), "Tunnel
// Encapsulations") or VXLAN (RFC 7348 section 5), and the inner Ethernet header.
const (
	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	geneveHeader   = 8 + 8
	vxlanHeader    = 8
	ethernetHeader = 14
)

// Overhead is how many bytes smaller than the tunnel interface's MTU the MTU
// of pods must be: 58 for Geneve over IPv4, 50 for VXLAN, 20 more over IPv6.
// With addresses of both families the larger one counts.
func Overhead(encapType string, encapIPs []netip.Addr) int {
	n := ipv4Header + udpHeader + ethernetHeader
	if slices.ContainsFunc(encapIPs, netip.Addr.Is6) {
		n += ipv6Header - ipv4Header
	}
	if encapType == config.EncapVXLAN {
		return n + vxlanHeader
	}
	return n + geneveHeader
}

// MTU is the MTU of pods and of the management port in bytes: what is
// configured, else what is left of the tunnel interface's.
func MTU(f hostplan.Facts, c config.Node) (int, error) {
	if c.MTU != 0 {
		return c.MTU, nil
	}
	if f.EncapMTU == 0 {
		return 0, errors.New("the tunnel interface's MTU is unknown: give --mtu, " +
			"or an --encap-ip that is on an interface of this node")
	}
	mtu := f.EncapMTU - Overhead(c.EncapType, f.EncapIPs)
	check := c
	check.MTU = mtu
	if mtu <= 0 || check.Validate() != nil {
		return 0, fmt.Errorf("the tunnel interface's MTU of %d leaves %d for pods, which is too little: raise it, "+
			"or give --mtu", f.EncapMTU, mtu)
	}
	return mtu, nil
}

// ErrNoAddress says that nothing tells a tunnel address.
var ErrNoAddress = errors.New("no tunnel address: give --encap-ip, or an InternalIP in the Node's status")

// Plan is the Open_vSwitch row's keys and the integration bridge. Without a
// tunnel address it fails.
func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error) {
	if len(f.EncapIPs) == 0 {
		return hostplan.Plan{}, ErrNoAddress
	}
	ids := map[string]string{
		names.OVSSystemID:  SystemID(f, c),
		names.OVSHostname:  c.Name,
		names.OVSEncapType: c.EncapType,
		names.OVSEncapIP:   hostplan.Join(f.EncapIPs),
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
		ids[names.OVSBridgeMappings] = hostplan.Join(c.BridgeMappings)
	}
	ovs := hostplan.OVS{ExternalIDs: ids, Defaults: defaults(), Keys: c.SBKeys, Bridges: []hostplan.Bridge{Bridge(c)}}
	return hostplan.Plan{OVS: ovs}, nil
}

// defaults are settings of ovn-controller that hold unless somebody has set others (ovn-controller(8)).
//
// The probes are how long it may hear nothing of the Southbound database (in ms) and of ovs-vswitchd (in s) before it
// asks whether they are there. It takes no answer in the same time for a lost connection. OVN's own 5 s are less than a
// busy server may be silent: ovn-controller would then connect and read everything again and again, which keeps the
// server busy.
//
// ovn-controller reads the whole Southbound database. Otherwise it asks for what its own switches and routers need. In
// a cluster that is nearly all of it, and the server works out for each node which rows these are (ADR 0076).
func defaults() map[string]string {
	return map[string]string{names.OVSRemoteProbe: "60000", names.OVSOpenFlowProbe: "60", names.OVSMonitorAll: "true"}
}

// KeepFlows has an ovn-controller that starts keep the installed flows for 5 s, in which it works out the wanted ones
// (ovn-controller(8)). Otherwise its restart loses packets. It is for a node whose flows are installed: on a new one,
// the first pods would wait as long.
func KeepFlows() hostplan.OVS {
	return hostplan.OVS{Defaults: map[string]string{names.OVSKeepFlows: "5000"}}
}

// Bridge is the integration bridge.
func Bridge(c config.Node) hostplan.Bridge {
	return hostplan.Bridge{Name: names.IntegrationBridge, FailMode: "secure", DatapathType: c.DatapathType}
}

// SystemID is the chassis name: the configured one, else the one that OVS has, else one derived from the node's name.
func SystemID(f hostplan.Facts, c config.Node) string {
	return cmp.Or(c.SystemID, f.SystemID, names.SystemID(c.Name))
}
