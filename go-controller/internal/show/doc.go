// Package show prints a Northbound database for people and for other programs:
// as `ovn-nbctl show` does, as JSON, as a database file, as a script of
// ovn-nbctl commands, and as a graph.
//
// Every form is a pure function of the database's content: rows are ordered by
// name, so that the same cluster always prints the same bytes.
package show
