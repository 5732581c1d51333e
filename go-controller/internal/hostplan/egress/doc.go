// Package egress plans how pods reach addresses outside the cluster: the cluster
// router sends their packets to the node's management port, and the node forwards them
// with its own address as the source. It is a room of package hostplan and pure like
// it.
package egress
