// Package gateway plans a gateway node's external bridge: a NIC and an address that
// the host and the node's gateway router share. It is a room of package hostplan and
// pure like it.
//
// The host and the gateway router have the same MAC and the same addresses, so a
// switch that learns MACs can't tell them apart. The OpenFlow flows here do. Conntrack
// remembers the gateway router's connections in a zone of its own. A packet from the
// NIC goes to the gateway router if it belongs to one of these, else to the host. ARP
// and neighbour discovery go to both. The host's own traffic leaves through a NORMAL
// flow, and its connections are not tracked: those that were open before the flows
// came go on.
//
// L3 describes the gateway to the cluster, as the Node's annotation.
package gateway
