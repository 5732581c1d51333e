// Package master wires `ovnkube master` together: watch the cluster, watch the Northbound database, reconcile, write
// annotations, serve metrics; alone, or as one of several of which a Lease elects the leader.
package master
