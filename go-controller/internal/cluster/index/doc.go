// Package index answers questions about the whole cluster without a look at every object: which zones have nodes, which
// gateways packets can leave by, which Service holds a virtual IP. Each index answers one question, is kept up to date
// by the State, and returns as Topics which of its answers a change altered.
//
// An index that only one feature needs belongs in the room of that feature. This package has those that several
// packages ask. The package is pure.
package index
