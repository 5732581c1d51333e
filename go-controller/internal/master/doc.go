// Package master wires `ovnkube master` together: watch the cluster, watch the
// Northbound database, reconcile, write annotations, serve metrics; alone or
// as one of several that take turns through a Lease.
package master
