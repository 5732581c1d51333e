package replica

import (
	"context"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
	"github.com/ovn-kubernetes/libovsdb/ovsdb/serverdb"
)

// ErrNotLeader says that the server does not lead the Raft cluster of the database, or no longer.
const ErrNotLeader = endError("the server does not lead the cluster")

// serverDatabase is the name of the database in which a server describes itself (ovsdb-server(5)).
const serverDatabase = "_Server"

// FollowLeader fails with ErrNotLeader unless the server leads the Raft cluster of the database, or there is none. It
// ends the connection when the server leads no longer.
func (c *Conn) FollowLeader(ctx context.Context) error {
	tables := []Table{{Name: serverdb.DatabaseTable, Columns: []string{"name", "model", "leader", "connected"},
		Row: &serverdb.Database{}}}
	there, err := c.monitor(ctx, serverDatabase, ovsdb.ConditionalMonitorRPC, tables, Sink{
		Change: func(_, after model.Model) {
			if c.follows(after) {
				c.fail(ErrNotLeader)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("asking whether the server leads: %w", err)
	}
	for _, row := range there.Rows(serverdb.DatabaseTable) {
		if c.follows(row) {
			return ErrNotLeader
		}
	}
	return nil
}

// follows tells whether a row says that another server leads the cluster of the database. One whose disk has failed
// goes on to say that it leads, and that it is not connected.
func (c *Conn) follows(row model.Model) bool {
	d, ok := row.(*serverdb.Database)
	return ok && d != nil && d.Name == c.database && d.Model == serverdb.DatabaseModelClustered &&
		(!d.Leader || !d.Connected)
}
