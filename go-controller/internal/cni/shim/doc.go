// Package shim is the ovn_cni program: it checks environment and
// configuration as CNI wants it, sends one request to the node agent and prints
// the answer. All knowledge is in the agent, so that upgrading it never meets
// an old plugin that knows better.
package shim
