// Package nodeport proves the ways into services that begin at a node: node
// ports, external addresses and load balancers' addresses, for clients inside
// and outside of the cluster, with backends in pods and on hosts; and says which
// address the backends see.
package nodeport
