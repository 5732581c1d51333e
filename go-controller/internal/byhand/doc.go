// Package byhand sets machines up without the master: what master-init,
// minion-init and gateway-init do, and their inverses.
//
// Both sides go the usual road. In the Northbound database, the rows of the
// cluster, of one node or of its gateway come from the master's translators
// and its planner. On the host, the rooms of package hostplan say what should
// be, and ovs and hostnet make it so. Running a command twice changes nothing
// the second time.
//
// With an API server that knows the machine as a Node, what is set is written
// to the Node's annotations too, so that the master agrees. Otherwise the
// node's logical switch carries the same annotations as a record
// (cluster.ParseByHand), by which the master keeps the node as if Kubernetes
// had told of it.
//
// What a command changes on the host it notes in a file first, so that the
// inverse can put back what was there.
package byhand
