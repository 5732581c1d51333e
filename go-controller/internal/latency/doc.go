// Package latency measures how long OVN takes to follow a change of the Northbound database: ovn-northd, which writes
// the Southbound database, and the ovn-controllers, which install flows on all nodes. It raises the sequence number of
// NB_Global now and then, and waits until OVN reports it. ADR 0079 says what that costs.
package latency
