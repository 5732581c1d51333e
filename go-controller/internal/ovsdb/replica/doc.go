// Package replica is a copy of tables of an OVSDB server, in rows of plain structs. It reads them from the server's
// notifications, without any step between. A row is never changed: one that changes is replaced.
package replica
