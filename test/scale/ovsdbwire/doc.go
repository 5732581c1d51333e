// Package ovsdbwire speaks just enough of the OVSDB protocol (RFC 7047, and monitor_cond of ovsdb-server(7)) to write
// as fast as a server accepts, to watch rows, and to count committed transactions. It keeps no copy of the data, so
// that it costs little compared with what it measures.
package ovsdbwire
