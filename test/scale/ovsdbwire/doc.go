// Package ovsdbwire speaks a small part of the OVSDB protocol (RFC 7047, and monitor_cond of ovsdb-server(7)). It
// writes as fast as a server accepts, watches rows, and counts committed transactions. It keeps no copy of the data, so
// that it costs little compared with what it measures.
package ovsdbwire
