// Package policyshape measures two ways to write network policies as rows of a Northbound database: with a port group
// for the subject of each policy, or with an address set for it and one port group of all pods. It measures ovn-northd
// and one ovn-controller, both real, of any release of OVN that the sandbox can fetch.
//
//	rows    operations on a Northbound database
//	cluster switches, pods, selectors and policies, in either shape
//	events  what changes while everything is measured
//	ovn     databases, ovn-northd, one real chassis and many fake ones
//	meter   CPU times, counts and moments
//	run     everything put together
//	table   results, as lines of JSON and as tables
//
// The real chassis has Open vSwitch with dummy devices: its flows are real, but it forwards no packets. The other
// chassis are only rows of the Southbound database.
package policyshape
