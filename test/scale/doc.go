// Package scale is the measuring of `ovnkube master` with many pods: the
// program cmd/bench, and a small test that the counts hold. They see the master
// from outside, on a real API server and a real ovsdb-server.
//
//	netns      a network namespace of one's own
//	process    programs and what they cost
//	ovsdbwire  just enough OVSDB to write, watch and count
//	rig        API server, Northbound database and master, put together
//	load       fake nodes, pods, and seeing them get their network
//	bench      the phases and the table
package scale
