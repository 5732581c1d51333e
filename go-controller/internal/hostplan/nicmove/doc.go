// Package nicmove plans how the configuration of a NIC moves to an Open vSwitch bridge that gets the NIC as a port, and
// back: addresses, routes, policy rules, neighbours, MAC, MTU and sysctls.
//
// A Device is the complete configuration of an interface: netlink attributes without a field of their own are kept as
// they are. A Host is the state of the NIC, the bridge and Open vSwitch at one moment. Forward and Back compare the
// configuration with a Host and return the remaining steps in order. So planning again continues or undoes a move that
// was interrupted at any point, and the plan of a finished move is empty.
//
// The order matters, because packets flow meanwhile. One interface loses nothing before the other has it, and default
// routes move last.
//
// The package is pure like hostplan. Packages hostnet and ovs read Hosts and execute steps; package internal/nicmove
// controls the move.
package nicmove
