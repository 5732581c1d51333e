// Package encap plans the node's end of the tunnels: the keys of the
// Open_vSwitch row by which ovn-controller finds its database, its name and its
// tunnel addresses (ovn-controller(8)), and the integration bridge. It is a
// room of package hostplan and pure like it.
package encap
