// Package mgmtport plans the management port, through which the node itself reaches
// pods and ClusterIPs. It is an internal port of br-int with the second address of
// each of the node's subnets, and has routes to the ranges of pods and services
// through the first address, which is the cluster router's. When the node connects to
// a service whose backend is the node itself, the packets come back through the same
// port, and get another source there.
//
// It is a room of package hostplan and pure like it.
package mgmtport
