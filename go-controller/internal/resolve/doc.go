// Package resolve asks servers of DNS for the addresses of names, again and again, and remembers them for a while. What
// it finds reaches the State as events, through package liveness, so that the core needs no clock.
package resolve
