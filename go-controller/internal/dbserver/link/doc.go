// Package link carries connections between the machines that run OVN's databases, over one TLS port on each.
//
// A program connects to a Unix socket that is named after the other machine. Link forwards the connection there, to one
// of the Unix sockets of that machine. Which one is the TLS connection's application protocol (ALPN, RFC 7301).
//
// Both sides show a certificate of the databases' servers. No other certificate of OVN opens these sockets.
package link
