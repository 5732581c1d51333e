// Package bench measures the master on this machine, and beside it what the
// machine can do at most: the same writes, sent raw, as fast as the servers
// take them.
//
// Counts (transactions, patches, rows) do not depend on the machine, so they
// are checked: a wrong one is a violation. Times do, so they are only told.
package bench
