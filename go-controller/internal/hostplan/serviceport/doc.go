// Package serviceport plans how connections that come to a node for a service
// find it: those to a node port on one of the node's addresses, and those to an
// external address or a load balancer's, are sent to the service's ClusterIP,
// where OVN takes over. Those from outside of the cluster to a service of
// externalTrafficPolicy Local are sent to its endpoints on this node instead; and
// where there is none, what the node itself sends to its own node port is sent to
// that of a node which has some.
// Checks tells what the node says of these services where it is asked for their
// health. It is a room of package hostplan and pure like it.
package serviceport
