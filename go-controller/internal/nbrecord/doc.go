// Package nbrecord reads what only the Northbound database knows of the cluster: the cluster router that somebody else
// made, nodes that were set up by hand and have no Node object, and gateways that were down when a master last wrote.
package nbrecord
