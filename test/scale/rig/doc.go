// Package rig sets up the servers for measuring a master: an API server with its store, Northbound databases, and the
// master itself. All are real, listen on the loopback address or on unix sockets, and keep their files in one temporary
// directory. Close stops and removes everything. The ports are fixed, so the program must be in a network namespace of
// its own (package netns).
//
// The master is observed only from outside: by what it writes, its /metrics and /readyz, and proc(5). Its writes are
// counted where they arrive, in the database's transaction log and in the API server's request counter.
package rig
