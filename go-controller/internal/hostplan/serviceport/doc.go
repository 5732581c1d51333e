// Package serviceport plans how connections that come to a node for a service
// find it: those to a node port on one of the node's addresses, and those to an
// external address or a load balancer's, are sent to the service's ClusterIP,
// where OVN takes over. It is a room of package hostplan and pure like it.
package serviceport
