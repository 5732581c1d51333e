// Package member runs the machines of a sandbox. Each member has network, mount, PID and UTS namespaces and a root
// directory of its own. Init (the program `sandbox init`), which is PID 1 in it, holds them.
//
// The root is a tmpfs with the read-only /usr of a source system (the cached root filesystem, or the host). /etc, /run,
// /var and /tmp are private, and /sys is that of the member's network namespace. The sandbox's directory has the same
// path as on the host, so that sockets and logs can be reached from both sides.
//
// Init starts the member's services on request over a unix socket, and reaps them. Their output goes to files in the
// member's log directory. Killing Init ends every process and mount of the member, and its network namespace. Kill does
// just that, with the PID and start time that Start recorded before Init was allowed to do anything.
//
// The package needs root and Linux.
package member
