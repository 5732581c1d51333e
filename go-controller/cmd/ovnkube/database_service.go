package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/database"
)

// errMoved says that a daemon must start again, with the addresses that the database has now.
var errMoved = errors.New("the database's addresses have changed")

// databaseServiceFlag names the Service of a database that runs in pods. db is "nb" or "sb".
func databaseServiceFlag(db, of string) cli.Flag {
	return stringFlag(db+"-service", "", "`NAMESPACE/NAME` of the Service of the "+of+" database, instead of --"+db+
		"-address; its port is named "+db)
}

// servers are the servers of a database that a Service names.
type servers struct {
	service database.Service
	clients *client.Clients
	found   []string // connection methods
	log     *slog.Logger
}

// findServers finds the servers of a database by the flag --nb-service or --sb-service. It sets the flag of their
// addresses instead. It waits for the first one with wait; else it tries once. It returns nil if the flag is not given.
func findServers(c *cli.Context, db string, wait bool, log *slog.Logger) (*servers, error) {
	flag := db + "-service"
	text := c.String(flag)
	if text == "" {
		return nil, nil
	}
	if c.IsSet(db + "-address") {
		return nil, usageError{fmt.Errorf("--%s-address and --%s: give one of them", db, flag)}
	}
	service, err := database.ParseService(flag, text, db)
	if err != nil {
		return nil, usageError{err}
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube")
	if err != nil {
		return nil, err
	}
	s := &servers{service: service, clients: clients, log: log}
	began := time.Now()
	for logged := ""; ; {
		var all bool
		s.found, all, err = s.look(c.Context)
		if err == nil && (all || !wait || time.Since(began) > waitForServers) {
			return s, errors.Join(c.Set(flag, ""), c.Set(db+"-address", strings.Join(s.found, ",")))
		}
		if !wait {
			return nil, err
		}
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.Warn("waiting for the database", "error", err)
		}
		select {
		case <-c.Done():
			return nil, fmt.Errorf("waiting for the database: %w", c.Err())
		case <-time.After(readPublishedAgain):
		}
	}
}

// waitForServers is how long a daemon waits for the last of several servers. Once it has begun, a further one has it
// start again.
const waitForServers = 20 * time.Second

// look looks the servers up. all is false while some are missing.
func (s *servers) look(ctx context.Context) (found []string, all bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readPublishedWithin)
	defer cancel()
	return s.service.Addresses(ctx, s.clients.Kube)
}

// follow returns an error that is errMoved once all servers are there, and one of them is new. One that is missing
// changes nothing: its pod may be about to start. It returns nil when ctx ends.
func (s *servers) follow(ctx context.Context, again time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again + rand.N(again)):
		}
		now, all, err := s.look(ctx)
		if err != nil {
			s.log.Debug("the servers of the database cannot be looked up", "error", err)
			continue
		}
		if all && slices.ContainsFunc(now, func(a string) bool { return !slices.Contains(s.found, a) }) {
			return fmt.Errorf("%w: Service %s has %s, had %s", errMoved, s.service, strings.Join(now, ","),
				strings.Join(s.found, ","))
		}
	}
}

// runUntilOutdated runs a daemon until one of the watchers returns an error: then it must start again.
func runUntilOutdated(ctx context.Context, work func(context.Context) error,
	watchers ...func(context.Context, time.Duration) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outdated := make(chan error, len(watchers))
	for _, w := range watchers {
		go func() {
			outdated <- w(ctx, lookForChanges)
			cancel()
		}()
	}
	err := work(ctx)
	cancel()
	var first error
	for range watchers {
		first = cmp.Or(first, <-outdated)
	}
	return cmp.Or(first, err)
}
