// Package ping sends ICMP echo requests (RFC 792, RFC 4443) that are never fragmented, and waits for the replies.
package ping
