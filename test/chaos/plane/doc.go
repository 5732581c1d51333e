// Package plane is the part of a cluster that forwards packets: a Southbound database with ovn-northd, and some nodes
// with Open vSwitch and ovn-controller. Nodes and pods are network namespaces. What it starts comes from the machine's
// own packages.
package plane
