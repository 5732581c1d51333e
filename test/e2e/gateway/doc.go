// Package gateway checks the egress paths of the cluster with a host outside, which reports the source addresses that
// it sees: through a node's own gateway, through another node's gateway, and without gateways. It also checks that the
// agent and the master set up the same as the commands by hand.
package gateway
