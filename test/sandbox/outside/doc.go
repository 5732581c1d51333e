// Package outside is a host that is not part of the cluster. It can reach the machines of the sandbox, through the
// control machine, but nothing behind them. It answers with the source address that it sees.
package outside
