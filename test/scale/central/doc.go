// Package central runs programs of Open vSwitch and OVN from a root filesystem, so that any release can be measured:
// databases, ovn-northd and what else a measurement needs. The caller is in mount and network namespaces of its own.
package central
