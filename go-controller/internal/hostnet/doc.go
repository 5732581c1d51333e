// Package hostnet is the network of this host. Netlink answers what is there,
// such as where an address is and which routes lead out; it reads and changes the
// items of package hostplan, and Watch tells of changes.
//
// Below it, item compares and applies links, addresses, routes, neighbours and
// sysctls, nft does the same with nftables, xtables reads the rules of the old
// iptables, conntrack forgets flows, nic moves what a NIC has onto a bridge,
// and before records the sysctls that were there first.
package hostnet
