package dbserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// How often Keep looks, and how long each thing that it does may take.
const (
	lookAgain  = 2 * time.Second
	actWithin  = 30 * time.Second
	probe      = 60 * time.Second // of clients, by the server
	northdWait = 10 * time.Second // until ovn-northd gives up a server that does not answer
)

// Keep configures a database as its clients need it, while the server of this machine leads it. It returns when ctx
// ends.
func (m Member) Keep(ctx context.Context, d Database) {
	log := m.Log.With("database", d.Short)
	k := keeper{m, d, log, false}
	for logged := ""; ; {
		err := k.tick(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("the database is not as it should be", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
	}
}

type keeper struct {
	Member
	d          Database
	log        *slog.Logger
	configured bool // since this server leads
}

// tick does what has to be done now.
func (k *keeper) tick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, actWithin)
	defer cancel()
	s, err := k.status(ctx, k.d)
	if err != nil {
		return err
	}
	if !s.leader {
		k.configured = false
		return nil
	}
	if !k.configured {
		if err := k.configure(ctx); err != nil {
			return err
		}
		k.configured = true
	}
	if len(s.servers) == 1 {
		return nil
	}
	nodes, r, err := k.look(ctx, k.d)
	if err != nil {
		return err
	}
	if v, ok := s.removable(nodes, r); ok {
		k.log.Warn("removing a server that is gone from the cluster", "server", v.id, "node", v.node, "nodes", nodes)
		_, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", k.Layout.Control(k.d), "cluster/kick", k.d.Name, v.id)
		return err
	}
	return nil
}

// configure upgrades the schema, and has the servers listen for clients.
func (k *keeper) configure(ctx context.Context) error {
	if err := k.upgrade(ctx); err != nil {
		return err
	}
	connection := "pssl:" + strconv.Itoa(k.d.Port) + ":" + k.Listen
	if k.d.Role != "" {
		connection = "role=" + k.d.Role + " " + connection
	}
	args := append([]string{
		"--db=unix:" + k.Layout.Socket(k.d), "--timeout=10", "init", "--",
		"--inactivity-probe=" + milliseconds(probe), "set-connection",
	}, strings.Fields(connection)...)
	if k.d.Short == "nb" {
		args = append(args, "--", "set", k.d.Global, ".", "options:northd_probe_interval="+milliseconds(northdWait))
	}
	_, err := output(ctx, "ovn-"+k.d.Short+"ctl", args...)
	return err
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// notTrue is the exit code of `ovsdb-tool compare-versions` for a comparison that is not true.
const notTrue = 2

// upgrade converts the database to the schema of this image, unless it has a newer one.
func (k *keeper) upgrade(ctx context.Context) error {
	server := "unix:" + k.Layout.Socket(k.d)
	have, err := output(ctx, "ovsdb-client", "--timeout=10", "get-schema-version", server, k.d.Name)
	if err != nil {
		return err
	}
	want, err := tool(ctx, "schema-version", k.Layout.Schema(k.d))
	if err != nil {
		return err
	}
	if have == want {
		return nil
	}
	var exit *exec.ExitError
	if _, err := tool(ctx, "compare-versions", have, "<", want); errors.As(err, &exit) && exit.ExitCode() == notTrue {
		k.log.Info("the database has a newer schema than this image", "have", have, "image", want)
		return nil
	} else if err != nil {
		return err
	}
	k.log.Info("upgrading the database's schema", "from", have, "to", want)
	if _, err := output(ctx, "ovsdb-client", "convert", server, k.Layout.Schema(k.d)); err != nil {
		return fmt.Errorf("upgrading the schema of database %s from %s to %s: %w", k.d.Short, have, want, err)
	}
	return nil
}
