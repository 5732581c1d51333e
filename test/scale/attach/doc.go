// Package attach attaches pods to one real node and measures the time: with the CNI plugin, as a container runtime
// does, and with the bare minimum that a pod's network needs (Bare). Both run on the same machine in the same state. It
// also measures when services arrive and change in that node's flows (FlowWatch).
//
// The node is a sandbox's, with Open vSwitch, ovn-controller, the master and the node agent. Its kubelet is stopped, so
// that it does not attach pods.
package attach
