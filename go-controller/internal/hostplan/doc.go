// Package hostplan says what a node should look like: the Open vSwitch rows,
// and the links, addresses, routes, neighbours and sysctls of its kernel, as
// plain values. Each room below it computes its part from
// Facts and the configuration with a function of the form
//
//	func Plan(f hostplan.Facts, c config.Node) (hostplan.Plan, error)
//
// Package all lists them, and joins their parts. What the node has, in the same values, is read by the
// packages hostnet and ovs, which also compare and apply.
//
// The package and its rooms are pure: no goroutine, clock, context, log or
// client. The same facts always give the same plan, byte for byte.
package hostplan
