// Package database finds the servers of OVN's databases that run in pods of the cluster, by their Service. The pods are
// in the network of their nodes, so that the addresses work where ClusterIPs and cluster DNS do not work yet.
//
// For the servers themselves, it knows which nodes shall run one, and keeps the record of each database's cluster.
package database
