// Package jsonrpc is a JSON-RPC 1.0 connection with an OVSDB server (RFC 7047 section 4). Answers and notifications are
// read in place, in one pass, by a Reader.
package jsonrpc
