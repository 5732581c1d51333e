// Package scale measures `ovnkube master` with many pods, and the CNI plugin on one node: with the program cmd/bench,
// and with small tests that check the counts. Both see the product from outside, with a real API server, real databases
// and, for the plugin, a real node.
//
//	netns      a network namespace of one's own
//	process    programs and what they cost
//	ovsdbwire  just enough OVSDB to write, watch and count
//	rig        API server, Northbound database and master, put together
//	load       fake nodes, pods, services, and seeing them get their network
//	attach     a real node, pods that are attached to it, and its flows
//	bench      the phases and the table
//
// Package policyshape is on its own: it measures OVN without the product, with the program cmd/policyshape.
package scale
