// Package nft keeps the chains, rules and sets of our nftables tables: masquerading, the hairpin, anti-spoofing, the
// drop of what pods send to OVN's databases, service ports, and the drop at the ingress of a NIC. Tables is the
// item.Kernel of these.
package nft
