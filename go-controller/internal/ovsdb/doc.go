// Package ovsdb is the live Northbound database: it keeps a connection, watches for changes, answers what is there
// (nb.View), and carries plans out.
//
// A Database runs one Session after the other. A Session is one connection with a copy of the database (package
// replica). It is thrown away as a whole when the connection breaks, the leader changes, or the copy is not to be
// trusted any more. So no monitor is ever resumed. Every new Session asks for a full pass.
//
// Every change in the database, whoever made it, makes the owners of the changed rows dirty. The only exception is a
// row that arrives exactly as our own transaction inserts it. Events only say where to look. What is there is always
// read from the copy, which is up to date before a transaction returns (RFC 7047 section 4.1.6: a transaction's update
// comes before its reply).
package ovsdb
