// Package cni implements the container network interface (CNI specification 1.1.0), by which a container runtime asks
// the node agent for a pod's network. Four packages below it do the work:
//
//   - shim is the ovn_cni program: it sends its environment and input to the agent's socket, and prints the answer;
//   - protocol defines request and answer;
//   - server, in the agent, serves the requests;
//   - podif makes, checks and removes a pod's interface in the kernel.
package cni
