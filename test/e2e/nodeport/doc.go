// Package nodeport checks the ingress paths of services that begin at a node: node ports, external addresses and load
// balancers' addresses, for clients inside and outside the cluster, with backends in pods and on hosts. It also checks
// the client addresses that the backends see.
package nodeport
