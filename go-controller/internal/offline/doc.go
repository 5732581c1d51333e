// Package offline works out what the Northbound database should hold for a set of objects, at once and without a
// server. The result is what the master arrives at when it has seen all objects. Valid annotations hold; nodes and pods
// without them get subnets and addresses as the master would grant them. The order of the objects does not matter. The
// package is pure.
package offline
