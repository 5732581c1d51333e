// Package index answers questions about the whole cluster without a look at
// every object: which zones have nodes, which gateways packets can leave by,
// which Service holds a virtual IP. Each index answers one question, is kept up
// to date by the State, and says as Topics which of its answers a change altered.
//
// An index that only one feature needs belongs into the room of that feature;
// here are those that several packages ask. The package is pure.
package index
