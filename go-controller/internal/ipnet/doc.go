// Package ipnet adds to net/netip the address arithmetic that the project needs: the n-th address of a subnet and its
// inverse, subnets of a subnet, the MAC that is derived from an address, and conversions from and to package net. All
// functions work for IPv4 and IPv6.
// The package is pure and imports nothing of this project.
package ipnet
