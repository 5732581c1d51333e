// Package outside is a host that is no part of the cluster: it knows the way to
// the machines of the sandbox, through the control machine, and to nothing
// behind them. It answers questions about where a packet seems to come from.
package outside
