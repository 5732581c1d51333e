// Package leader elects the one master that works, with a Lease. The elector is client-go's. This package adds what it
// lacks: a leader stops at the first sight of another holder, it stops before the Lease is released, and a standby
// notices within a second that a Lease has expired.
package leader
