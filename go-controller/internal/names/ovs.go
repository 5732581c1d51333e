package names

import "github.com/google/uuid"

// External_ids keys of the Open_vSwitch row that ovn-controller reads
// (ovn-controller(8)).
const (
	OVSSystemID       = "system-id"
	OVSHostname       = "hostname"
	OVSRemote         = "ovn-remote"
	OVSNorthbound     = "ovn-nb" // for programs that connect to the Northbound database
	OVSRemoteProbe    = "ovn-remote-probe-interval"
	OVSOpenFlowProbe  = "ovn-openflow-probe-interval"
	OVSMonitorAll     = "ovn-monitor-all"
	OVSKeepFlows      = "ovn-ofctrl-wait-before-clear"
	OVSEncapType      = "ovn-encap-type"
	OVSEncapIP        = "ovn-encap-ip"
	OVSBridgeMappings = "ovn-bridge-mappings"
	OVSBridgeDatapath = "ovn-bridge-datapath-type"
)

// External_ids keys of the Open_vSwitch row by which the node agent remembers
// what it made of the node as a gateway.
const (
	OVSGatewayBridge  = "northbound-gateway-bridge"  // the external bridge
	OVSGatewayMapping = "northbound-gateway-mapping" // what it added to OVSBridgeMappings
)

// External_ids keys of the Open_vSwitch row with the API server's address, the file of its CA, and a token. An operator
// sets them, for commands typed by hand.
const (
	OVSAPIServer = "k8s-api-server"
	OVSAPICACert = "k8s-ca-certificate"
	OVSAPIToken  = "k8s-api-token"
)

// OVSMadeInPod is the key of the Open_vSwitch row by which `ovnkube openvswitch` knows a database that it has created.
const OVSMadeInPod = "northbound-made-in-pod"

// OVSOwnKeys is the key of an SSL row that the node agent has made.
const OVSOwnKeys = "northbound-keys"

// OVNKeys are the keys above that mean nothing without OVN: all but the system-id, the host's name, and those of the
// API server.
func OVNKeys() []string {
	return []string{OVSRemote, OVSNorthbound, OVSRemoteProbe, OVSOpenFlowProbe, OVSMonitorAll, OVSKeepFlows,
		OVSEncapType, OVSEncapIP, OVSBridgeMappings, OVSBridgeDatapath, OVSGatewayBridge, OVSGatewayMapping}
}

// External_ids keys of an Interface row. The first two are ovn-controller's
// (ovn-controller(8), ovn-architecture(7)); it sets IfaceInstalled to "true"
// once the port's flows are in the switch.
const (
	IfaceID          = "iface-id"
	IfaceIDVer       = "iface-id-ver"
	IfaceInstalled   = "ovn-installed"
	IfaceAttachedMAC = "attached_mac"
	IfaceIPAddresses = "ip_addresses"
	IfaceSandbox     = "sandbox" // AttachmentID: the container id of a pod's sandbox, and the interface if it is another
)

// systemIDSpace is the UUIDv5 name space of chassis names.
const systemIDSpace = "3d8e1c52-94ab-5c0e-8f3b-6a0d7e21b9c4"

// SystemID is the OVS system-id, and so the chassis name, of a node that has
// none yet. It depends on the node's name only: a node whose OVS database is
// lost comes back as the same chassis.
func SystemID(node string) string {
	return uuid.NewSHA1(uuid.MustParse(systemIDSpace), []byte(node)).String()
}

// PatchPort is the port that ovn-controller makes, on the bridge that has the
// network of a localnet port, for it (ovn-controller(8), "ovn-bridge-mappings").
func PatchPort(localnet string) string { return "patch-" + localnet + "-to-" + IntegrationBridge }

// NFTable is our nftables table, of family inet. All in it is ours.
const NFTable = "northbound"
