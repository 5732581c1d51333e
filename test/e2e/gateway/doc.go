// Package gateway proves the ways out of the cluster with a host outside, which
// says where it sees packets come from: through a node's own gateway, through
// another's, and without any; and that what the agent and the master set up is
// what the commands by hand would.
package gateway
