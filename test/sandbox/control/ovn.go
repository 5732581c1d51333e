package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/pki"
)

// Keys are PEM files for ssl: addresses of a database.
type Keys struct{ Key, Cert, CA string }

// The authorities of the databases: a certificate of the one is of no use at the other. dir is below the directory of
// the state.
func keys(state, database, name string) Keys {
	dir := filepath.Join(state, Name, "pki", database)
	return Keys{filepath.Join(dir, name+".key"), filepath.Join(dir, name+".crt"), filepath.Join(dir, "ca.crt")}
}

// NBKeys are those of the master, and of an administrator, for the Northbound database.
func (c *Control) NBKeys() Keys { return keys(c.Spec.State, NB, Master) }

// NodeKeys are those of a node for the Southbound database. Their common name is its chassis name.
func NodeKeys(state, node string) Keys { return keys(state, SB, node) }

// certify makes an authority for each database, the servers' certificates and those of their clients.
func (c *Control) certify() error {
	for database, clients := range map[string][]string{NB: {Master}, SB: c.Config.Nodes} {
		dir := filepath.Dir(keys(c.Spec.State, database, "").CA)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		ca, err := pki.New(dir)
		if err != nil {
			return err
		}
		errs := []error{ca.Server(dir, "server", nil, []string{database})}
		for _, name := range clients {
			errs = append(errs, ca.Client(dir, name, name))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// database is one ovsdb-server. Its clients on other machines come over TLS, with a certificate of its own authority.
type database struct {
	name, schema, socket string
	remote               string // besides the socket
}

// StartOVN starts the databases and northd. It returns when northd has written to the Southbound database.
func (c *Control) StartOVN(ctx context.Context) error {
	if err := c.certify(); err != nil {
		return fmt.Errorf("making the databases' certificates: %w", err)
	}
	for _, d := range []database{
		{NB, "ovn-nb", NBSocket, fmt.Sprintf("pssl:%d:[::]", NBPort)},
		{SB, "ovn-sb", SBSocket, "db:OVN_Southbound,SB_Global,connections"},
	} {
		if err := c.startDatabase(ctx, d); err != nil {
			return err
		}
	}
	// What a connection in this role may write is in the database itself, and depends on the certificate's common name.
	_, err := c.Run(ctx, "ovn-sbctl", "--db=unix:"+SBSocket, "--timeout=30", "init", "--", "--inactivity-probe=60000",
		"set-connection", "role=ovn-controller", fmt.Sprintf("pssl:%d:[::]", SBPort))
	if err != nil {
		return err
	}
	err = c.StartService(ctx, member.Service{Name: Northd, Argv: []string{
		"ovn-northd", "--no-chdir", "-vsyslog:off", "--pidfile=/run/ovn/ovn-northd.pid", "--unixctl=/run/ovn/ovn-northd.ctl",
		"--ovnnb-db=unix:" + NBSocket, "--ovnsb-db=unix:" + SBSocket,
	}})
	if err != nil {
		return err
	}
	_, err = c.Run(ctx, "ovn-nbctl", "--db=unix:"+NBSocket, "--timeout=30", "--wait=sb", "sync")
	return err
}

func (c *Control) startDatabase(ctx context.Context, d database) error {
	file := "/run/ovn/" + d.name + ".db"
	if _, err := c.Run(ctx, "ovsdb-tool", "create", file, "/usr/share/ovn/"+d.schema+".ovsschema"); err != nil {
		return err
	}
	k := keys(c.Spec.State, d.name, "server")
	err := c.StartService(ctx, member.Service{Name: d.name, Argv: []string{
		"ovsdb-server", "--no-chdir", "-vsyslog:off", "--pidfile=/run/ovn/" + d.name + ".pid", "--unixctl=/run/ovn/" +
			d.name + ".ctl",
		"--remote=punix:" + d.socket, "--remote=" + d.remote,
		"--private-key=" + k.Key, "--certificate=" + k.Cert, "--ca-cert=" + k.CA, file,
	}})
	if err != nil {
		return err
	}
	return c.Until(ctx, "the "+d.name+" database listens", func(context.Context) bool {
		_, err := os.Stat(c.Host(d.socket))
		return err == nil
	}, d.name)
}
