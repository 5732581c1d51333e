package ovsdb

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// DatabaseName is the name of the database in its schema.
const DatabaseName = "OVN_Northbound"

// reachTimeout bounds connecting to one server, and readTimeout reading everything from it.
const (
	reachTimeout = 5 * time.Second
	readTimeout  = 60 * time.Second
)

// connection is a client with one monitor on every table of the schema.
type connection struct {
	client.Client
	models models
}

// connect opens a connection, in a Raft cluster to the leader. It tries the servers one by one, each with a client and
// a deadline of its own: a server that does not answer must not use up the time of the others.
func connect(ctx context.Context, c config.OVSDB, schema *nb.Schema, logger logr.Logger) (*connection, error) {
	var reasons []string
	for _, address := range c.Addresses {
		cl, err := reach(ctx, c, address, schema, logger)
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

// reach asks one server for its schema, and then connects with models that fit that schema.
func reach(
	ctx context.Context, c config.OVSDB, address string, schema *nb.Schema, logger logr.Logger,
) (*connection, error) {
	opts, err := options(c, address, logger)
	if err != nil {
		return nil, err
	}
	reaching, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	asking, err := dial(reaching, nil, opts)
	if err != nil {
		return nil, err
	}
	ms := modelsFor(schema, asking.Schema())
	asking.Close()
	cl, err := dial(reaching, ms.all(), append(opts, client.WithLeaderOnly(true)))
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := monitor(reading, cl, ms); err != nil {
		cl.Close()
		return nil, err
	}
	return &connection{cl, ms}, nil
}

func options(c config.OVSDB, address string, logger logr.Logger) ([]client.Option, error) {
	opts := []client.Option{client.WithLogger(&logger), client.WithEndpoint(address)}
	if !strings.HasPrefix(address, "ssl:") {
		return opts, nil
	}
	t, err := TLS(c)
	return append(opts, client.WithTLSConfig(t)), err
}

// dial connects a client with these models.
func dial(ctx context.Context, byTable map[string]model.Model, opts []client.Option) (client.Client, error) {
	dbModel, err := model.NewClientDBModel(DatabaseName, byTable)
	if err != nil {
		return nil, fmt.Errorf("describing the database: %w", err)
	}
	cl, err := client.NewOVSDBClient(dbModel, opts...)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	if err := cl.Connect(ctx); err != nil {
		cl.Close()
		return nil, err
	}
	return cl, nil
}

func monitor(ctx context.Context, cl client.Client, ms models) error {
	var tables []client.MonitorOption
	for t, m := range ms.all() {
		tables = append(tables, client.WithTable(m, ms.schema.Monitored(ms.row(m), ms.lacking[t]...)...))
	}
	if _, err := cl.Monitor(ctx, cl.NewMonitor(tables...)); err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	return nil
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
