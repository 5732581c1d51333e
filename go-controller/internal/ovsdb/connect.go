package ovsdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/jsonrpc"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb/replica"
)

// DatabaseName is the name of the database in its schema.
const DatabaseName = "OVN_Northbound"

// reachTimeout bounds connecting to one server, and readTimeout reading everything from it.
const (
	reachTimeout = 5 * time.Second
	readTimeout  = 60 * time.Second
)

// serverDatabase is the database that tells about the others (ovsdb-server(5)).
const serverDatabase = "_Server"

// databaseRow is a row of the _Server database.
type databaseRow struct {
	UUID   string `ovsdb:"_uuid"`
	Name   string `ovsdb:"name"`
	Model  string `ovsdb:"model"`
	Leader bool   `ovsdb:"leader"`
}

// connect opens a session, in a Raft cluster with the leader. It tries the servers one by one, each with a deadline of
// its own: a server that does not answer must not use up the time of the others.
func connect(ctx context.Context, c config.OVSDB, schema *nb.Schema, wake func()) (*Session, error) {
	var reasons []string
	for _, address := range c.Addresses {
		s, err := reach(ctx, c, address, newSession(schema, address, wake))
		if err == nil {
			return s, nil
		}
		reasons = append(reasons, address+": "+err.Error())
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connecting to the Northbound database: %s", strings.Join(reasons, "; "))
}

// reach connects a session with one server, and reads everything from it.
func reach(ctx context.Context, c config.OVSDB, address string, s *Session) (*Session, error) {
	var keys *tls.Config
	if strings.HasPrefix(address, "ssl:") {
		var err error
		if keys, err = TLS(c); err != nil {
			return nil, err
		}
	}
	reaching, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := jsonrpc.Dial(reaching, address, keys, s.notified)
	if err != nil {
		return nil, err
	}
	s.conn = conn
	err = s.prepare(reaching)
	if err == nil {
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		err = s.monitor(reading, DatabaseName, s.rows)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepare makes sure that the server is the leader, and finds out which columns it has.
func (s *Session) prepare(ctx context.Context) error {
	if err := s.monitor(ctx, serverDatabase, s.server); err != nil {
		return err
	}
	has, err := s.columns(ctx)
	if err != nil {
		return err
	}
	for _, t := range s.schema.Tables() {
		s.lacking[t] = slices.DeleteFunc(s.schema.Newer(t), func(column string) bool { return has[t][column] })
		monitored := slices.DeleteFunc(s.schema.Columns(t), func(c string) bool { return slices.Contains(s.lacking[t], c) })
		s.rows.Add(t, s.schema.NewModel(t), monitored...)
	}
	return nil
}

// columns is the columns that the server has, by table (RFC 7047 section 4.1.2).
func (s *Session) columns(ctx context.Context) (map[string]map[string]bool, error) {
	var schema struct {
		Tables map[string]struct{ Columns map[string]struct{} }
	}
	err := s.conn.Call(ctx, "get_schema", []any{DatabaseName}, func(result *jsonrpc.Reader) error {
		return json.Unmarshal(result.Raw(), &schema)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	out := map[string]map[string]bool{}
	for name, t := range schema.Tables {
		out[name] = map[string]bool{}
		for column := range t.Columns {
			out[name][column] = true
		}
	}
	return out, nil
}

// monitor reads the tables of a database, and has the server notify of every change.
func (s *Session) monitor(ctx context.Context, database string, rows *replica.Replica) error {
	params := []any{database, database, rows.Requests()} // the name of the monitor is that of the database
	if err := s.conn.Call(ctx, "monitor_cond", params, func(updates *jsonrpc.Reader) error {
		return s.update(database, updates)
	}); err != nil {
		return fmt.Errorf("reading the database %s: %w", database, err)
	}
	return nil
}

// notified handles a notification: an "update2" with the monitor's name and the updates.
func (s *Session) notified(method string, params *jsonrpc.Reader) (err error) {
	if method != "update2" {
		return nil
	}
	n, monitor := 0, ""
	params.Array(func() {
		switch n++; n {
		case 1:
			monitor = params.Text()
		default:
			err = s.update(monitor, params)
		}
	})
	return cmp.Or(err, params.Err())
}

// update handles changes in a database.
func (s *Session) update(database string, updates *jsonrpc.Reader) error {
	if database == DatabaseName {
		changes, err := s.rows.Apply(updates)
		s.index.changed(changes)
		return err
	}
	changes, err := s.server.Apply(updates)
	for _, c := range changes {
		if db, ok := c.After.(*databaseRow); ok && db.Name == DatabaseName && db.Model == "clustered" && !db.Leader {
			return errNotLeader
		}
	}
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
	if c.PrivKey == "" || c.Cert == "" || c.CACert == "" {
		return nil, errors.New("an ssl: address needs --nb-privkey, --nb-cert and --nb-cacert")
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.PrivKey)
	if err != nil {
		return nil, fmt.Errorf("loading --nb-cert %s and --nb-privkey %s: %w", c.Cert, c.PrivKey, err)
	}
	pem, err := os.ReadFile(c.CACert)
	if err != nil {
		return nil, fmt.Errorf("loading --nb-cacert: %w", err)
	}
	pool, caFile := x509.NewCertPool(), c.CACert
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("loading --nb-cacert %s: no PEM certificate in it", c.CACert)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		// Certificates of Open vSwitch's own PKI name no host (ovs-pki(8)), and OVN's programs do not look for one:
		// they trust whatever the authority has signed. So do we; the chain is checked all the same.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			intermediates := x509.NewCertPool()
			for _, c := range cs.PeerCertificates[1:] {
				intermediates.AddCert(c)
			}
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if err != nil {
				return fmt.Errorf("checking the server's certificate with --nb-cacert %s: %w", caFile, err)
			}
			return nil
		},
	}, nil
}
