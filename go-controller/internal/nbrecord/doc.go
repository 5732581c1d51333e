// Package nbrecord reads what the Northbound database alone knows of the cluster:
// the router that it was made with, nodes that were set up by hand and have no
// Node object, and gateways that were down when a master wrote last.
package nbrecord
