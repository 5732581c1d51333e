// Package ipnet has the address arithmetic that the rest of the code needs on
// top of net/netip: the n-th address of a subnet and its inverse, subnets of a
// subnet, and the MAC that belongs to an address. All functions work for IPv4
// and IPv6 alike. The package is pure and imports nothing of ours.
package ipnet
