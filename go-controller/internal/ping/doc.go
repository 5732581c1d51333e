// Package ping sends echo requests (RFC 792, RFC 4443) that are never fragmented,
// and waits for their answers.
package ping
