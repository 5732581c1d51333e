// Package server is the node agent's end of CNI: it listens on a unix socket
// that only root may use, and serves ADD, DEL, CHECK, GC and STATUS (CNI
// specification 1.1.0).
//
// ADD waits for the pod's annotation, makes the interface, puts it onto br-int,
// waits until ovn-controller has installed the flows and announces the pod's
// addresses; all waits are for events. Whatever it made is undone when a step
// fails, the deadline passes or the plugin goes away before it has its answer,
// and the error names the step. What an agent leaves that ends in the middle is
// marked as unfinished: the next ADD, DEL or GC takes it away. DEL removes only
// what carries its container's id, any number of times.
package server
