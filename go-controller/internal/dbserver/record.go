package dbserver

import (
	"context"
	"errors"
)

// Record is what the servers of a database have written down about their cluster, where all of them can read it.
type Record struct {
	Cluster string // its UUID; "" before it has been created
	// Generation is when the cluster was created, in milliseconds. A cluster gives way only to a later one.
	Generation int64
	// Servers has the UUID of each node's server, or removed.
	Servers map[string]string
}

// removed stands for the server of a node that is no member any more: its file must not be used again.
const removed = "removed"

// errChanged says that somebody else has changed a Record.
var errChanged = errors.New("the record of the cluster has changed")

// Registry stores the Record of one database.
type Registry interface {
	// Read returns a zero Record if there is none.
	Read(ctx context.Context) (Record, error)
	// Update changes the Record, and makes it first if there is none. change may be called more than once. Its error
	// keeps the Record as it is; Update wraps it.
	Update(ctx context.Context, change func(*Record) error) error
}

// Cluster is what Kubernetes knows of the databases' servers.
type Cluster interface {
	// Nodes lists the nodes that shall run a server each. If it is empty, the one pod may be on any node.
	Nodes(ctx context.Context) ([]string, error)
	// Registry is that of a database.
	Registry(d Database) Registry
}

// enter returns a change that enters a server into the Record of a cluster. was is the cluster that the Record must
// still be of. alone says that the server is its cluster's only one.
func enter(f file, generation int64, node, was string, alone bool) func(*Record) error {
	return func(r *Record) error {
		if r.Cluster != was {
			return errChanged
		}
		if r.Cluster != f.cluster {
			r.Cluster, r.Generation, alone = f.cluster, generation, true
		}
		if alone || r.Servers == nil {
			r.Servers = map[string]string{}
		}
		r.Servers[node] = f.server
		return nil
	}
}

// remove returns a change that notes that a server is no member any more.
func remove(node, id string) func(*Record) error {
	return func(r *Record) error {
		if r.Servers[node] == id {
			r.Servers[node] = removed
		}
		return nil
	}
}

// others tells whether servers of other nodes are recorded.
func (r Record) others(node string) bool {
	for n, id := range r.Servers {
		if n != node && id != removed {
			return true
		}
	}
	return false
}
