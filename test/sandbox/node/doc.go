// Package node is a worker machine of a sandbox: Open vSwitch with the userspace datapath, ovn-controller, containerd,
// a real kubelet, and `ovnkube node` with an identity of its own.
//
// The sandbox makes what an administrator would make: the physical bridge with the node's addresses, and the chassis's
// name. The product makes br-int, the tunnels, the management port and the CNI configuration. The node is Ready when
// the product has written that configuration.
package node
