// Package node is one worker machine of a sandbox: Open vSwitch with the
// userspace datapath, ovn-controller, containerd, a real kubelet, and `ovnkube
// node` under an identity of its own.
//
// The sandbox makes what an administrator would have: the physical bridge with
// the node's addresses, and the chassis's name. br-int, the tunnels, the
// management port and the CNI configuration are the product's work, and the
// node is Ready when the product has written that configuration.
package node
