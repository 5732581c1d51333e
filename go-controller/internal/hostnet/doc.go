// Package hostnet brings the kernel of the node (links, addresses, routes,
// neighbours, sysctls) to what package hostplan wants: Read tells what is
// there, Diff compares, Apply changes one thing.
//
// The interface Kernel stands for the kernel. Netlink is the real one, for the
// network namespace in which it was made; Memory keeps the state in a map and
// prints it as text. Only what is wanted, and what carries our mark, is ever
// read, changed or removed: addresses and permanent neighbours of the links
// that are wanted, and routes with hostplan.RouteProtocol.
package hostnet
