// Package networks measures a cluster with many primary networks: what each costs the master, ovn-northd and the
// ovn-controller of a node on which all of them have pods, and whether anything is left of networks that were deleted.
//
//	networks  what is measured, in its order
//	cluster   the networks and pods, and the processes
//	meter     times, CPU times and counts
//	change    one pod and one network more; a restart of the master; networks that come and go
//	table     the results
//
// There are two nodes. The first is a real chassis, with dummy devices: its flows are real, but it forwards no packets.
// The second is only rows of the Southbound database. Every network has a pod on each.
package networks
