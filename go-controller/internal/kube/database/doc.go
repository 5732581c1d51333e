// Package database finds the servers of an OVN database that runs in pods of the cluster, by its Service. The pods are
// in the network of their nodes, so that the addresses work where ClusterIPs and cluster DNS do not work yet.
package database
