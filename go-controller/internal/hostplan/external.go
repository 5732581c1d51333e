package hostplan

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

// External is the bridge that has a gateway node's NIC.
type External struct {
	Bridge     string
	Userspace  bool           // the bridge's datapath_type is netdev
	Uplink     string         // the NIC
	UplinkPort int            // its OpenFlow port number
	UplinkDown bool           // it has no carrier
	Patch      string         // the patch port to br-int that ovn-controller makes for the localnet port
	PatchPort  int            // its OpenFlow port number; 0 until it is there
	VLAN       int            // VLAN id of the gateway's network on the NIC, 0 for none
	LocalTag   int            // VLAN id of which the bridge's local port is an access port, 0 for none
	Link       string         // the host's interface with the addresses: the bridge's own, or a VLAN device on it
	MAC        ipnet.MAC      // of that interface
	MTU        int            // of that interface, bytes
	Addrs      []netip.Prefix // its addresses but link-local ones, in the kernel's order
	NextHops   []netip.Addr   // of the best default routes through it in the main table; also link-local ones
}

// GatewayRecord is what the Open_vSwitch row says of the node as a gateway.
type GatewayRecord struct {
	Mappings string // external_ids:ovn-bridge-mappings as it is
	Bridge   string // the bridge of which we made the node a gateway, "" for none
	Added    string // the "network:bridge" that we added to the mappings for it, "" for none
	Release  bool   // the cluster knows that the node is no gateway any more: the record can go
}
