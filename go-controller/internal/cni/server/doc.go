// Package server is the node agent's side of CNI. It listens on a unix socket that only root may use, and serves ADD,
// DEL, CHECK, GC and STATUS (CNI specification 1.1.0).
//
// ADD waits for the pod's annotation, makes the interface, adds it to br-int, waits until ovn-controller has
// installed the flows, and announces the pod's addresses. It makes the pod's further interfaces, which are other
// entries of the annotation, at the same time. It waits for events and never polls. If a step fails, the deadline
// passes, or the plugin goes away, ADD undoes its work, and the error names the step. If the agent itself ends in the
// middle, the interfaces are marked as unfinished, and the next ADD, DEL or GC removes them. DEL may be repeated, and
// removes only what has its container's id.
package server
