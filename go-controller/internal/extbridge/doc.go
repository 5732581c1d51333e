// Package extbridge looks at a gateway node's external bridge, the one that has
// the NIC: Find says in Open vSwitch's and the kernel's words what
// hostplan/gateway plans from. Keep holds the flows of one bridge in place and
// does nothing else: it is `ovnkube gateway-helper`.
package extbridge
