// Package reflector is the one way in which the master and the node agents list and watch a kind: client-go's
// Reflector with a store that keeps nothing. What is kept of an object is for the Sink to decide.
//
// A list that comes back empty is believed only when a second look agrees. After an outage of the API server a watch is
// back within seconds.
package reflector
