// Package doctor looks a node over and says what is wrong with it, with the
// command that mends it. It changes nothing: no database, no kernel setting, no
// file; what it sends are questions, and pings to the other chassis, to the
// node's own router and, on a gateway node, to the next hops.
//
// Each check is a function from what was gathered to one Finding; they are
// listed in checks. What is shared is gathered once, before: the Open vSwitch
// and Southbound databases, the Node, and the plan of package hostplan for this
// node, so that what is checked is what `ovnkube node` keeps true. A check whose
// ground is missing says so instead of guessing: no problem is told twice, and
// a node without Kubernetes is checked as far as it goes.
package doctor
