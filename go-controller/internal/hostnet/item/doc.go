// Package item brings the items of package hostplan, pieces of the kernel's
// state, to what is wanted: Read tells what is there, Diff compares, Apply changes
// one thing.
//
// The interface Kernel stands for the kernel. Netlink is the real one for links,
// addresses, routes, neighbours and sysctls, and nft.Tables for nftables. Only wanted
// items, and items with our mark, are ever read, changed or removed: addresses and
// permanent neighbours of wanted links, and routes with hostplan.RouteProtocol.
package item
