// Package offline works out what the Northbound database should hold from a set
// of objects, at once and with no server: what the master arrives at when it
// has seen them all. Valid annotations hold; nodes and pods that have none get
// subnets and addresses as the master would give them. The result does not
// depend on the order of the objects. The package is pure.
package offline
