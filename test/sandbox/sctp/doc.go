// Package sctp asks and answers questions over SCTP (RFC 9260) on a kernel that
// has none, through raw IP sockets, over IPv4 and IPv6. It needs CAP_NET_RAW.
//
// An association is a whole one: four-way handshake with verification tags and a
// signed cookie, CRC32c, DATA that is acknowledged, repeated and put once,
// HEARTBEAT, ABORT, and the three-way shutdown. It carries one question and one
// answer, each in one DATA chunk of stream 0, of at most MaxMessage bytes, from
// one address to one address. There is no flow or congestion control, which two
// messages have no use for, and the client alone repeats what is lost, until its
// context ends: a server repeats its part when it is asked again.
//
// github.com/pion/sctp is an SCTP in Go, too, but as WebRTC has it: all its
// associations start at port 5000 and go to port 5000.
//
// While a raw socket of the protocol is open in a network namespace, its kernel
// does not say that it has no SCTP (ICMP protocol unreachable). A raw socket sees
// the packets of all ports; several servers live side by side, as each of them
// looks at its own port alone. So an INIT to a port that nobody serves is not
// answered where some other port is served. A kernel that has SCTP sees the
// packets, too, and aborts associations that it knows nothing of: there this
// package says ErrKernel instead (Usable). Nothing here has a kernel load SCTP.
package sctp
