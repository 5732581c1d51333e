// Package egress plans how pods reach what is outside the cluster: the cluster
// router sends such packets to the node's management port, and the node
// forwards them with its own address as their source. It is a room of package
// hostplan and pure like it.
package egress
