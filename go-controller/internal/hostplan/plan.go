package hostplan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Facts is what a plan depends on besides the configuration: what the cluster
// and the host say.
type Facts struct {
	SystemID string         // external_ids:system-id as OVS has it, "" when it has none
	Subnets  []netip.Prefix // the node's pod subnets, at most one per family; none until the master has written them
	EncapIPs []netip.Addr   // the tunnel end points in use
	EncapMTU int            // MTU of the interface that carries them; 0 when unknown
	Own      []netip.Addr   // the Node's internal addresses that this host has, at most one per family
	RALinks  []string       // interfaces with routes from IPv6 router advertisements
	External *External      // the external bridge of a gateway node; nil when the node is none
	Gateway  GatewayRecord  // what Open vSwitch has of a gateway, now or from before

	// Connection methods of the databases as Open vSwitch has them, with commas (ovn-remote and ovn-nb).
	Southbound, Northbound string
}

// OVS is the wanted part of the Open_vSwitch database
// (ovs-vswitchd.conf.db(5)); what is not named in it is left alone.
type OVS struct {
	ExternalIDs map[string]string // of the Open_vSwitch row; "" means that the key must be absent
	Defaults    map[string]string // likewise; a key that has another value already keeps it: an operator chose that
	Keys        config.Keys       // of the SSL row, which ovn-controller uses; the zero value leaves the row alone
	Bridges     []Bridge
	Ports       []Port
}

// Bridge is a Bridge row with its local port.
type Bridge struct {
	Name         string
	FailMode     string
	DatapathType string
}

// String shows the bridge on one line.
func (b Bridge) String() string {
	return fmt.Sprintf("bridge %s fail_mode=%s datapath_type=%s", b.Name, b.FailMode, b.DatapathType)
}

// Port is a Port row with its one Interface row of the same name.
type Port struct {
	Bridge      string
	Name        string
	Type        string            // Interface.type: "internal", or "" for a kernel interface
	MAC         string            // Interface.mac, internal ports only; "" leaves it unset
	MTU         int               // Interface.mtu_request, internal ports only; 0 leaves it unset
	ExternalIDs map[string]string // of the Interface; other keys are left alone
}

// String shows the port on one line.
func (p Port) String() string {
	s := fmt.Sprintf("port %s on %s", p.Name, p.Bridge)
	if p.Type != "" {
		s += " type=" + p.Type
	}
	if p.MAC != "" {
		s += " mac=" + p.MAC
	}
	if p.MTU != 0 {
		s += fmt.Sprintf(" mtu_request=%d", p.MTU)
	}
	for _, k := range slices.Sorted(maps.Keys(p.ExternalIDs)) {
		s += fmt.Sprintf(" external_ids:%s=%s", k, p.ExternalIDs[k])
	}
	return s
}

// Plan is what a node should look like.
type Plan struct {
	OVS   OVS
	Flows []Flows
	Host  []Item // in the order in which to apply them
}

// Merge joins the plans of several rooms.
func Merge(plans ...Plan) Plan {
	out := Plan{OVS: OVS{ExternalIDs: map[string]string{}, Defaults: map[string]string{}}}
	for _, p := range plans {
		maps.Copy(out.OVS.ExternalIDs, p.OVS.ExternalIDs)
		maps.Copy(out.OVS.Defaults, p.OVS.Defaults)
		if p.OVS.Keys != (config.Keys{}) {
			out.OVS.Keys = p.OVS.Keys
		}
		out.OVS.Bridges = append(out.OVS.Bridges, p.OVS.Bridges...)
		out.OVS.Ports = append(out.OVS.Ports, p.OVS.Ports...)
		out.Flows = append(out.Flows, p.Flows...)
		out.Host = append(out.Host, p.Host...)
	}
	return out
}

// String prints the plan, one line a thing.
func (p Plan) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p.OVS.ExternalIDs)) {
		if v := p.OVS.ExternalIDs[k]; v != "" {
			fmt.Fprintf(&b, "external_ids:%s=%s\n", k, v)
		} else {
			fmt.Fprintf(&b, "external_ids:%s absent\n", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.OVS.Defaults)) {
		fmt.Fprintf(&b, "external_ids:%s=%s unless it is set\n", k, p.OVS.Defaults[k])
	}
	if k := p.OVS.Keys; k != (config.Keys{}) {
		fmt.Fprintf(&b, "ssl private_key=%s certificate=%s ca_cert=%s\n", k.PrivKey, k.Cert, k.CACert)
	}
	for _, r := range p.OVS.Bridges {
		fmt.Fprintln(&b, r)
	}
	for _, r := range p.OVS.Ports {
		fmt.Fprintln(&b, r)
	}
	for _, f := range p.Flows {
		fmt.Fprint(&b, f)
	}
	for _, i := range p.Host {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// Join is values as text, with commas.
func Join[T fmt.Stringer](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return strings.Join(out, ",")
}

// PodPort is the OVS port of a pod (ovn-architecture(7), "Life Cycle of a
// VIF"): iface-id ties it to the logical port, iface-id-ver to this very pod
// and not one of the same name before or after it, and sandbox to the
// container that it must vanish with.
func PodPort(logicalPort, podUID, sandbox string, n annotation.PodNetwork) Port {
	return Port{
		Bridge: names.IntegrationBridge,
		Name:   names.HostVeth(sandbox),
		ExternalIDs: map[string]string{
			names.IfaceID: logicalPort, names.IfaceIDVer: podUID, names.IfaceSandbox: sandbox,
			names.IfaceAttachedMAC: n.MAC.String(), names.IfaceIPAddresses: Join(n.IPs),
		},
	}
}
