package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/vswitchdb"
)

const (
	connectTimeout = 5 * time.Second       // one attempt to connect and to read the database
	echoEvery      = 20 * time.Second      // whether the server still answers
	lookEvery      = time.Second           // whether the connection is lost, if nothing has told so
	firstRetry     = 50 * time.Millisecond // between attempts to connect; doubles
	lastRetry      = 2 * time.Second       // the longest
	repeatLog      = 30 * time.Second      // the same failure
)

// link is one connection to the server, and the copy of the database that came over it. The library could make a lost
// connection good by itself. But if the next one is lost, too, while it does so, its goroutines get in each other's
// way, and the copy is empty in between. So a link that is lost stays as it was, to be read, until another takes its
// place.
type link struct {
	client.Client
	copy *cache.TableCache
}

// up tells whether the server is connected at this moment.
func (l *link) up() bool { return l.CurrentEndpoint() != "" }

// newLink connects, and reads the database.
func newLink(ctx context.Context, address string, events cache.EventHandler, log *slog.Logger) (*link, error) {
	dbModel, err := model.NewClientDBModel(Database, models())
	if err != nil {
		return nil, fmt.Errorf("building the database model: %w", err)
	}
	logger := logr.FromSlogHandler(log.Handler())
	c, err := client.NewOVSDBClient(dbModel, client.WithEndpoint(address), client.WithLogger(&logger))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l := &link{Client: c}
	if err := l.read(ctx, events); err != nil {
		c.Close()
		return nil, fmt.Errorf("connecting to the Open vSwitch database at %s: %w", address, err)
	}
	return l, nil
}

// read makes the copy. It has only the columns in use: the statistics of every interface change every few seconds, and
// ovn-controller keeps its notes in the bridge's external_ids.
func (l *link) read(ctx context.Context, events cache.EventHandler) error {
	if err := l.Connect(ctx); err != nil {
		return err
	}
	if l.copy = l.Cache(); l.copy == nil {
		return client.ErrNotConnected // lost already
	}
	l.copy.AddEventHandler(events)
	root, bridge := &vswitchdb.OpenvSwitch{}, &vswitchdb.Bridge{}
	port, iface, ssl := &vswitchdb.Port{}, &vswitchdb.Interface{}, &vswitchdb.SSL{}
	_, err := l.Monitor(ctx, l.NewMonitor(
		client.WithTable(root, &root.Bridges, &root.ExternalIDs, &root.OVSVersion, &root.SSL),
		client.WithTable(ssl, &ssl.PrivateKey, &ssl.Certificate, &ssl.CaCert, &ssl.ExternalIDs),
		client.WithTable(bridge, &bridge.Name, &bridge.Ports, &bridge.FailMode, &bridge.DatapathType),
		client.WithTable(port, &port.Name, &port.Interfaces, &port.Tag),
		client.WithTable(iface, &iface.Name, &iface.Type, &iface.MAC, &iface.MTURequest, &iface.ExternalIDs, &iface.Ofport,
			&iface.Error, &iface.Options),
	))
	return err
}

// wait returns when the connection is lost, or ctx ends. A server that does not answer counts as lost.
func (l *link) wait(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for asked := time.Now(); l.up(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.DisconnectNotify(): // not told to whom does not listen at that moment
		case <-look.C:
		}
		if time.Since(asked) < echoEvery {
			continue
		}
		asked = time.Now()
		if err := l.echo(ctx); err != nil {
			l.Close()
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
	return errors.New("the connection was lost")
}

func (l *link) echo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return l.Echo(ctx)
}

// keep replaces the link whenever it is lost, until ctx ends.
func (d *DB) keep(ctx context.Context) {
	defer close(d.ended)
	for ctx.Err() == nil {
		l, _ := d.current()
		if err := l.wait(ctx); ctx.Err() == nil {
			d.relink(ctx, err)
		}
	}
	l, _ := d.current()
	l.Close()
}

// relink tries to connect until it succeeds, or ctx ends. It logs why: first why the last link is lost, then each
// failure when it is new, and again every repeatLog while it lasts.
func (d *DB) relink(ctx context.Context, why error) {
	var last string
	var logged time.Time
	for retry := firstRetry; ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		if why.Error() != last || time.Since(logged) > repeatLog {
			d.log.Warn("Open vSwitch database not connected, trying again", "address", d.address, "error", why)
			last, logged = why.Error(), time.Now()
		}
		l, err := newLink(ctx, d.address, d, d.log)
		if err == nil {
			d.log.Info("Open vSwitch database connected again", "address", d.address)
			d.replace(l)
			return
		}
		why = err
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}
