// Package rig puts together what a measurement of the master runs on: an API
// server with its store, Northbound databases, and the master itself, all real,
// all on the loopback address or on unix sockets, all in one temporary
// directory. Close ends and removes everything. The ports are fixed, so the
// program must be in a network namespace of its own (package netns).
//
// The master is seen from outside only: through what it writes, its /metrics
// and /readyz, and proc(5). What it wrote is counted where it arrives, in the
// database's transaction log and in the API server's request counter.
package rig
