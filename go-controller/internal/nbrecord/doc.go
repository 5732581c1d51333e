// Package nbrecord reads what only the Northbound database knows of the cluster: the cluster router that somebody else
// made, nodes that were set up by hand and have no Node object, gateways that were down when a master last wrote,
// addresses that were freed lately or that only rows still have, and the addresses that names in DNS had.
package nbrecord
