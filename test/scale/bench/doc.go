// Package bench measures the master on this machine. For comparison, it measures the machine's limits: the same writes,
// sent raw, as fast as the servers accept them.
//
// Counts (transactions, patches, rows) do not depend on the machine, so they are checked: a wrong count is a violation.
// Times depend on it, so they are only reported.
package bench
