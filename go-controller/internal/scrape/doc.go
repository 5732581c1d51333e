// Package scrape serves a daemon's metrics to the network: over TLS, to those whom the API server lets read them. The
// daemon itself listens on the loopback address. So what is open to the network runs without any right on the node.
package scrape
