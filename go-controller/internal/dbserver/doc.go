// Package dbserver runs the servers of OVN's two databases in pods. The servers of a database form a Raft cluster, also
// a single one (ovsdb(7), "Clustered Database Service Model").
//
// The servers reach each other through link, not by addresses: to Raft, a server's address is a Unix socket that has
// the name of its node. So a node may change its address. And only a database's server can take part: OVN's
// certificates for nodes do not open these sockets.
//
// Three things happen for each database:
//
//   - Member.Prepare makes the database's file before the server starts: it creates the cluster, or joins it.
//   - Member.ServerArgs is how ovsdb-server is started.
//   - Member.Keep has the cluster listen for clients, upgrades its schema, and removes servers that are gone for good.
package dbserver
