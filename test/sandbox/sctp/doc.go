// Package sctp asks and answers questions over SCTP (RFC 9260) on a kernel without SCTP, through raw IP sockets, over
// IPv4 and IPv6. It needs CAP_NET_RAW.
//
// An association is complete: four-way handshake with verification tags and a signed cookie, CRC32c, DATA that is
// acknowledged, repeated and delivered once, HEARTBEAT, ABORT, and the three-way shutdown. It carries one question and
// one answer between two addresses, each in one DATA chunk of stream 0, of at most MaxMessage bytes. Two messages need
// no flow or congestion control. Only the client repeats lost packets, until its context ends: a server repeats its
// part when the client asks again.
//
// github.com/pion/sctp is another SCTP in Go, but for WebRTC: all its associations use port 5000 on both sides.
//
// While a raw socket for SCTP is open in a network namespace, its kernel does not report that it has no SCTP (ICMP
// protocol unreachable). A raw socket receives the packets of all ports. Several servers can run side by side, since
// each looks only at its own port. So an INIT to an unused port gets no answer while another port is served. A kernel
// with SCTP also sees the packets, and aborts associations that it does not know: in that case this package returns
// ErrKernel (Usable). This package never makes a kernel load SCTP.
package sctp
