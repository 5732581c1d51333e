package ovsdb

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// DatabaseName is the name of the database in its schema.
const DatabaseName = "OVN_Northbound"

// reachTimeout bounds connecting to one server, and readTimeout reading everything from it.
const (
	reachTimeout = 5 * time.Second
	readTimeout  = 60 * time.Second
)

// connection is a connection with a copy of every table of the schema.
type connection struct {
	*replica.Conn
	copy    *replica.Copy
	index   *index
	lacking map[string][]string // columns of ours that the server lacks, by table
}

// connect opens a connection, in a Raft cluster to the leader. It tries the servers one by one, each with a deadline of
// its own: a server that does not answer must not use up the time of the others. wake is called when rows change.
func connect(ctx context.Context, c config.OVSDB, schema *nb.Schema, wake func()) (*connection, error) {
	var reasons []string
	for _, address := range c.Addresses {
		cl, err := reach(ctx, c, address, schema, wake)
		if err == nil {
			return cl, nil
		}
		reasons = append(reasons, address+": "+err.Error())
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connecting to the Northbound database: %s", strings.Join(reasons, "; "))
}

// reach connects to one server and reads everything from it.
func reach(
	ctx context.Context, c config.OVSDB, address string, schema *nb.Schema, wake func(),
) (*connection, error) {
	conn, err := dial(ctx, c, address)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	cl := &connection{Conn: conn, index: newIndex(schema, wake), lacking: map[string][]string{}}
	if err := cl.read(reading, schema); err != nil {
		cl.Close()
		return nil, fmt.Errorf("reading the database: %w", err)
	}
	return cl, nil
}

// dial connects to a server, unless another one leads.
func dial(ctx context.Context, c config.OVSDB, address string) (*replica.Conn, error) {
	var keys *tls.Config
	if strings.HasPrefix(address, "ssl:") {
		var err error
		if keys, err = TLS(c); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := replica.Dial(ctx, address, keys, DatabaseName)
	if err != nil {
		return nil, err
	}
	if err := conn.FollowLeader(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// read copies the columns of ours, except those that the server lacks.
func (cl *connection) read(ctx context.Context, schema *nb.Schema) (err error) {
	var tables []replica.Table
	server := cl.Schema()
	for _, name := range schema.Tables() {
		for _, c := range schema.Newer(name) {
			if t := server.Table(name); t != nil && t.Column(c) == nil {
				cl.lacking[name] = append(cl.lacking[name], c)
			}
		}
		tables = append(tables, replica.Table{Name: name, Columns: schema.Monitored(name, cl.lacking[name]...),
			Row: schema.NewModel(name)})
	}
	cl.copy, err = cl.Monitor(ctx, tables, replica.Sink{Load: cl.index.load, Change: cl.index.change})
	return err
}

// Check reports errors that no retry can cure: those in the files that an ssl: address needs.
func Check(c config.OVSDB) error {
	for _, a := range c.Addresses {
		if strings.HasPrefix(a, "ssl:") {
			_, err := TLS(c)
			return err
		}
	}
	return nil
}

// TLS loads the keys for an ssl: address.
func TLS(c config.OVSDB) (*tls.Config, error) {
	t, err := tlsfiles.Load(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("reading --nb-privkey, --nb-cert and --nb-cacert: %w", err)
	}
	return t, nil
}
