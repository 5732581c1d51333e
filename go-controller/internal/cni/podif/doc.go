// Package podif makes, checks, announces and removes the kernel part of a
// pod's network: a veth pair with one end in the pod's network namespace, that
// end's MAC, addresses, routes and MTU, and the other end ready to be a port of
// Open vSwitch.
//
// The host's end is named after the container id, is made in a link group of
// its own, and has the container id as its alias (ip-link(8)), after a prefix
// until Finish: whatever instant the agent ends at, the next Add, Remove or
// Containers knows what it has before it. Remove removes only a link of the
// right container.
package podif
