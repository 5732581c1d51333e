// Package member runs the machines of a sandbox: each member is a network,
// mount, PID and UTS namespace with a root directory of its own, held by a
// process that is PID 1 in it (Init, the program `sandbox init`).
//
// The root is a tmpfs with /usr taken read-only from a source system (the
// cached root filesystem, or the host), a private /etc, /run, /var and /tmp, a
// /sys of the member's own network namespace, and the sandbox's directory at
// the path that it has on the host, so that sockets and logs are reachable from
// both sides.
//
// Init starts the member's services when asked over a unix socket, and reaps
// them; their output goes to files in the member's log directory. Killing Init
// ends every process and mount of the member, and its network namespace: that
// is all that Kill does, by the PID and start time that Start recorded before
// Init was allowed to do anything.
//
// The package needs root and Linux.
package member
