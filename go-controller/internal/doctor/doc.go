// Package doctor examines a node. It reports what is wrong, and the command that
// solves it. It changes nothing: no database, no kernel setting, no file. It only asks
// questions, and pings the other chassis, the node's own router and, on a gateway
// node, the next hops.
//
// Each check is a function from facts to one Finding; checks lists them. facts are
// gathered once before: the Open vSwitch and Southbound databases, the Node, and the
// plan of package hostplan for this node, so that a check compares with what `ovnkube
// node` keeps. A check that lacks what it depends on says so: no problem is reported
// twice, and a node without Kubernetes is examined as far as possible.
package doctor
