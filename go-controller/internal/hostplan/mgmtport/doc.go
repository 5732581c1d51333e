// Package mgmtport plans the management port, through which the node itself
// reaches pods and ClusterIPs: an internal port of br-int with the second
// address of each of the node's subnets, routes to the pod and service ranges
// through the first, which is the cluster router's, and what the kernel needs
// around them. What the node sends to a service whose backend is the node itself
// comes back through the same port, and gets another source there. It is a room of package hostplan and pure like it.
package mgmtport
