package ovsdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// How a server that does not answer is given up. Another member that leads instead is a proof: that takes at most
// echoInterval + askOthers, and askTimeout for each other server. Without it the server may be busy, and reconnecting
// would cost it more. A server that has a transaction of ours gets as long as the transaction.
const (
	echoInterval = 2 * time.Second
	askOthers    = 2 * time.Second // without an answer; and between two times
	askTimeout   = time.Second     // for each of the others
	echoTimeout  = 10 * time.Second
)

// errDeposed is a reason why a Session ends.
const errDeposed = sessionError("the server does not answer, and another one leads")

// servers is the configuration with the server of the last session at the end: it may be the one that hangs.
func (d *Database) servers() config.OVSDB {
	c := d.config
	if at := slices.Index(c.Addresses, d.last); at >= 0 {
		c.Addresses = append(slices.Delete(slices.Clone(c.Addresses), at, at+1), d.last)
	}
	return c
}

// alive returns once the server has answered, or with the reason to give it up.
func (d *Database) alive(ctx context.Context, s *Session) error {
	ctx, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- s.conn.Echo(ctx) }()
	ask := time.NewTicker(askOthers)
	defer ask.Stop()
	for heard := time.Now(); ; {
		select {
		case err := <-answered:
			return err
		case <-ctx.Done():
			return fmt.Errorf("the server has not answered: %w", ctx.Err())
		case <-ask.C:
		}
		if d.otherLeads(ctx) {
			return errDeposed
		}
		if last := s.answered.Load(); last != nil && last.After(heard) {
			heard = *last
		}
		if silent := time.Since(heard).Round(time.Second); silent >= echoTimeout && s.sending.Load() == 0 {
			return fmt.Errorf("the server has not answered for %s", silent)
		}
	}
}

// otherLeads tells whether a server other than that of this session leads the cluster.
func (d *Database) otherLeads(ctx context.Context) bool {
	for _, address := range d.config.Addresses {
		if address != d.last && leads(ctx, d.config, address) {
			return true
		}
	}
	return false
}

// leads tells whether a server answers that it leads.
func leads(ctx context.Context, c config.OVSDB, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := dial(ctx, c, address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
