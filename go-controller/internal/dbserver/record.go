package dbserver

import (
	"context"
	"maps"
)

// Record is what the servers of a database have written down about their cluster, where all of them can read it.
type Record struct {
	Cluster string            // its UUID; "" before it has been created
	Servers map[string]string // the UUID of each node's server
}

// Registry stores the Record of one database.
type Registry interface {
	// Read returns a zero Record if there is none.
	Read(ctx context.Context) (Record, error)
	// Update changes the Record, and makes it first if there is none. change may be called more than once.
	Update(ctx context.Context, change func(*Record)) error
}

// Cluster is what Kubernetes knows of the databases' servers.
type Cluster interface {
	// Nodes lists the nodes that shall run a server each. If it is empty, the one pod may be on any node.
	Nodes(ctx context.Context) ([]string, error)
	// Registry is that of a database.
	Registry(d Database) Registry
}

// enter adds a server to the Record. alone says that no other server is left in it.
func (r *Record) enter(f file, node string, alone bool) {
	r.Cluster = f.cluster
	if alone {
		r.Servers = nil
	}
	r.Servers = maps.Clone(r.Servers)
	if r.Servers == nil {
		r.Servers = map[string]string{}
	}
	r.Servers[node] = f.server
}
