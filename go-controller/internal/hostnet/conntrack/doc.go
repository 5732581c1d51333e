// Package conntrack has the kernel's connection tracking forget UDP flows to
// services that have changed: UDP knows no end, and nftables' rules are asked for
// a flow's first packet only.
package conntrack
