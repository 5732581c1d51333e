// Package gateway plans a gateway node's external bridge: a NIC and an address
// that the host and the node's gateway router share. It is a room of package
// hostplan and pure like it.
//
// Both ends have the same MAC and the same addresses, so that a switch which
// learns MACs can't tell them apart: the OpenFlow flows here do. What the
// gateway router sends is remembered in a conntrack zone of its own; what comes
// from the NIC and belongs to a remembered connection goes to the gateway
// router, anything else to the host. ARP and neighbour discovery answers go to
// both. The host's own traffic leaves as ever, through a NORMAL flow, and no
// connection of the host is ever remembered: those that were open before the
// flows came go on.
//
// L3 says the same to the cluster, as the Node's annotation.
package gateway
