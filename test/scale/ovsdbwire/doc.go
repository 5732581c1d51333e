// Package ovsdbwire speaks just enough of the OVSDB protocol (RFC 7047, and
// monitor_cond of ovsdb-server(7)) to write as fast as a server takes it, to
// watch rows come and go, and to count what a server has committed. It keeps no
// copy of the data, so it costs little beside what it measures.
package ovsdbwire
