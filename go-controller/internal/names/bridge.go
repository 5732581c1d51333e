package names

// External_ids keys of the Bridge row of a bridge that has taken a NIC in, by
// which others find the one from the other.
const (
	BridgeID     = "bridge-id"     // the bridge's own name
	BridgeUplink = "bridge-uplink" // the NIC
)

// UplinkBridge is the bridge that takes a NIC in: "br" and the NIC's name, cut
// to the length of an interface's name. Long names can so lead to one bridge.
func UplinkBridge(nic string) string { return cut("br" + nic) }
