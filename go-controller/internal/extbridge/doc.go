// Package extbridge reads a gateway node's external bridge, the one with the NIC.
// Find returns the facts that hostplan/gateway plans from. Keeper holds the flows of
// one bridge in place and does nothing else: it is `ovnkube gateway-helper`.
package extbridge
