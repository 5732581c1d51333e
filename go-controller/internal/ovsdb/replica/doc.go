// Package replica is a connection to an ovsdb-server, with a copy in memory of the tables that it monitors. It decodes
// rows in one pass from the connection into the structs that hold them. With a client for all purposes, reading the
// Northbound database was a third of a restart (docs/adr/0053-own-copy-of-the-database.md). The package speaks RFC 7047
// and the monitors of ovsdb-server(7). A library reads the JSON.
//
// A connection is never resumed. When it is lost, or says something that does not fit the copy, it ends.
package replica
