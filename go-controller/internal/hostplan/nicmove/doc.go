// Package nicmove plans how what a NIC has moves to the Open vSwitch bridge
// that takes the NIC in, and how it moves back: addresses, routes, policy
// rules, neighbours, MAC, MTU and sysctls.
//
// A Device is what an interface has, as the kernel tells it, without loss: what
// has no field of its own is kept as the kernel's attribute. A Host is what the
// NIC, the bridge and Open vSwitch have at one moment. Forward and Back compare
// what should move with a Host and answer the ordered steps that are left to do.
// So a move that was interrupted anywhere is finished or taken back by asking
// again, and where all is as it should be the answer is empty.
//
// Order matters, because packets flow meanwhile. Nothing is taken from one
// interface before the other has it; default routes change over last.
//
// The package is pure like hostplan; hostnet and ovs read Hosts and carry steps
// out, and package internal/nicmove conducts.
package nicmove
