// Package cni is the container network interface (CNI specification 1.1.0):
// how a container runtime asks for a pod's network, and how the node agent
// gives it. Four packages below it do the work:
//
//   - shim is all of the ovn_cni program: it turns its environment and standard
//     input into one request on the agent's socket, and prints the answer;
//   - protocol is the form of request and answer;
//   - server, in the agent, serves the requests;
//   - podif makes, checks and removes a pod's interface in the kernel.
package cni
