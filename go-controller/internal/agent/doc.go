// Package agent is the node's daemon. It computes what the node should look
// like (package hostplan) from its Node object, the host and the
// configuration, compares, and repairs what differs (packages ovs and
// hostnet): at start, whenever Kubernetes, Open vSwitch or the kernel tells of
// a change, and every now and then for what nobody tells. It serves the CNI
// plugin (package cni/server), and publishes what the master needs to know as
// annotations of the Node.
//
// Order at start: the chassis name is published before anything else, so that
// the master can bind ports to it; then come br-int and the management port;
// when its flows are installed the CNI configuration is written, by which the
// kubelet takes the node's network for ready. Nothing is undone when the agent
// stops: running pods keep their network, and a new agent finds all as it
// should be.
package agent
