// Package demo shows a person, on a fresh cluster, that the network works: what
// is in the Northbound database, packets between pods and to a service, what
// goes with a pod, how a change made behind the master's back is undone, and
// what a restart writes. Every step runs the command that it prints, and fails
// when the cluster doesn't do what it should.
package demo
