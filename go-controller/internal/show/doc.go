// Package show prints a Northbound database for people and programs: like `ovn-nbctl show`, as JSON, as a database
// file, as a script of ovn-nbctl commands, and as a graph.
//
// The output depends only on the database's content: rows are sorted by name, so that the same cluster always prints
// the same bytes.
package show
