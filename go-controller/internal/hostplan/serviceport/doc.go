// Package serviceport plans how the node's kernel sends on connections to services
// that come to the node. It is a room of package hostplan and pure like it.
//
// Connections to a node port, an external address or a load balancer's address go to
// the service's ClusterIP, where OVN takes over. With externalTrafficPolicy Local,
// connections from outside the cluster go to the service's endpoints on this node
// instead. Where it has none here, the node's own connections to its node port go to
// the node port of a node with endpoints.
//
// Checks is what the node answers when load balancers ask for the health of these
// services.
package serviceport
