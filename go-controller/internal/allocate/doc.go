// Package allocate decides which subnets a node gets and which addresses a pod
// gets.
//
// The annotations are the durable record: a valid annotation is honoured, also
// after a restart, a new leader, or the loss of the Northbound database. An
// annotation that can't be right (outside the node's subnet, taken, malformed)
// is refused with a Problem and written anew, never trusted. Of two objects
// that claim the same thing the older one keeps it. What an object says that
// gets nothing, because nothing is left, is removed from it.
//
// A node that lost its annotation, or was made anew under its name, gets the
// subnets back that its pods have addresses in as long as they are free.
//
// The Ledger is what allocate remembers; it is rebuilt from the State at the
// start, by handing it every object as one Change. Within one call all claims
// are heard before anything new is given out, so that nobody is given what
// another already holds.
//
// Addresses are given out in turn, not lowest first, so that the address of a
// pod just deleted is not at once another pod's. .0 is the subnet, .1 its
// router, .2 the node's management port, and the last address of an IPv4
// subnet its broadcast address; the last one else is where services' health
// checks come from (cluster.HealthSource); pods get the others.
//
// The package is pure.
package allocate
