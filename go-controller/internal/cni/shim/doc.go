// Package shim is the ovn_cni program: it checks environment and configuration as CNI requires, sends one request to
// the node agent and prints the answer. All logic is in the agent, so that an old plugin works with a newer agent.
package shim
