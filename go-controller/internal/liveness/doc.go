// Package liveness finds out what can only be known by waiting: whether a gateway's machine is alive, and which
// addresses the names in policies have in DNS. What it finds reaches the State as events, so that the core needs no
// clock.
package liveness
