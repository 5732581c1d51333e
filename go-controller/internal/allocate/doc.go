// Package allocate grants subnets to nodes, addresses on the join switch to gateway routers, and addresses to pods, to
// exits of primary networks and to IPAMClaims.
//
// The annotations are the durable record. A valid annotation is honoured, also after a restart, a new leader, or the
// loss of the Northbound database. An annotation that can't be right (outside the node's subnet, taken, malformed) is
// reported as a Problem and written anew. When two objects claim the same thing, the older one keeps it. When nothing
// is left for an object, its annotation is removed.
//
// A node that lost its annotation, or was made anew under its name, gets the subnets back that its switch has in the
// database, as long as they are free. Of several nodes that claim the same, the one whose switch has it comes first.
//
// The Ledger records who holds what. It is rebuilt from the State at the start, where each object is a Change. One call
// of Update looks at all claims before it grants anything new: nothing is granted that another object already claims.
//
// Addresses of pods and subnets of nodes are granted in turn, not lowest first. What was freed is not granted again for
// a minute, nor while pods have it whose Node is gone. In a node subnet .0 is the network, .1 the router, and .2 the
// management port. The last address of an IPv4 subnet is the broadcast address. The last one before that is where
// health checks of services come from (cluster.HealthSource). Pods get the others.
//
// The package is pure.
package allocate
