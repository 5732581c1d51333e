// Package ovsdb is the live Northbound database: it connects and reconnects, watches, answers what is there (nb.View),
// and carries plans out.
//
// A Database runs one Session after the other. A Session is one connection with one monitor and a cache of its own,
// thrown away as a whole when the connection, the leader or our trust in the cache is lost; so nothing has to be right
// about resuming a monitor. Every new Session asks for a full pass.
//
// What changes in the database comes back as owners whose rows should be looked at again, whoever made the change; only
// a row that comes just as our own transaction inserts it is no news. Events only say where to look; what is there is
// always read from the cache, which libovsdb brings up to date before it returns from a transaction (RFC 7047 section
// 4.1.6: a transaction's update comes before its reply).
//
// The libovsdb client stops here: no other package of the master knows it.
package ovsdb
