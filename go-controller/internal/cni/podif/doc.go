// Package podif makes, checks and removes the kernel part of a pod's network:
// a veth pair with one end in the pod's network namespace, that end's MAC,
// addresses, routes and MTU, and the other end ready to be a port of Open
// vSwitch.
//
// The host's end is named after the container id and carries the whole id as
// its alias (ip-link(8)): Remove removes only a link with the right alias.
package podif
