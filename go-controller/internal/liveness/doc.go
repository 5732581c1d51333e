// Package liveness finds out what can only be known by waiting: whether a gateway's machine is alive. Its verdicts
// reach the State as events, so that the core needs no clock.
package liveness
