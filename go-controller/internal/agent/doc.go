// Package agent is the node's daemon. It plans what the node should look like
// (package hostplan) from the Node object, the host and the configuration, and
// repairs what differs (packages ovs and hostnet). It does so at start, after each
// event of Kubernetes, Open vSwitch or the kernel, and at an interval for changes
// that cause no event. It also serves the CNI plugin (package cni/server), and writes
// what the master needs as annotations of the Node.
//
// At start it publishes the chassis name first, so that the master can bind ports to
// it. Then come br-int and the management port. When that has its flows, the agent
// writes the CNI configuration, by which the kubelet takes the node's network for
// ready. An agent that stops undoes nothing: running pods keep their network, and the
// next agent finds nothing to change.
package agent
