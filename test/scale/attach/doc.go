// Package attach attaches pods to one real node, and times it: by the CNI
// plugin, as a container runtime would; and by hand, with as little as a pod's
// network takes (Bare). Both are on the same machine in the same state. It also
// sees services come to that node's flows, and change there (FlowWatch).
//
// The node is a sandbox's, with Open vSwitch, ovn-controller, the master and the
// node agent. Its kubelet is stopped: nobody else attaches pods.
package attach
