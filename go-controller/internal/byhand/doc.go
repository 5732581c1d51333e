// Package byhand sets machines up without the master: it is master-init, minion-init
// and gateway-init, and their inverses.
//
// It works with the daemons' own parts. The master's translators and its planner make
// the rows of the cluster, of a node or of its gateway. The rooms of package hostplan
// plan the host, and ovs and hostnet change it. A second run of a command changes
// nothing.
//
// When an API server knows the machine as a Node, the command writes the Node's
// annotations too, so that the master agrees. Otherwise the node's logical switch
// carries the same annotations (cluster.ParseByHand), and the master keeps the node as
// if it came from Kubernetes.
//
// Before a command changes the host it records the present state in a file. The
// inverse restores that.
package byhand
