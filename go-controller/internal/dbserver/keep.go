package dbserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How often Keep looks, and for how long clients and servers wait for each other.
const (
	lookAgain  = 2 * time.Second
	probe      = 60 * time.Second // of clients, by the server
	northdWait = 10 * time.Second // until ovn-northd gives up a server that does not answer
)

// Keep configures a database as its clients need it, while the server of this machine leads it. It returns when ctx
// ends.
func (m Member) Keep(ctx context.Context, d Database) {
	log := m.Log.With("database", d.Short)
	k := keeper{Member: m, d: d, log: log}
	for logged := ""; ; {
		err := k.tick(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("the database could not be checked or configured", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(k.pause()):
		}
	}
}

type keeper struct {
	Member
	d          Database
	log        *slog.Logger
	configured string // the leadership of this server in which it configured the database: cluster, server and term
	waits      bool   // for the database to be filled
	logged     bool   // that it waits was logged
}

// pause is how long to wait before the next look.
func (k *keeper) pause() time.Duration {
	if k.waits {
		return lookAgain / 4
	}
	return lookAgain
}

// tick does what has to be done now.
func (k *keeper) tick(ctx context.Context) error {
	s, err := k.status(ctx, k.d)
	k.measure(s)
	if err != nil && !s.left {
		return err
	}
	return errors.Join(k.awaitContents(ctx, s), k.maintain(ctx, s))
}

// maintain keeps the server's record, and the database's settings and servers while this server leads.
func (k *keeper) maintain(ctx context.Context, s status) error {
	nodes, r, err := k.look(ctx, k.d)
	if err != nil {
		return err
	}
	if err := k.checkRecord(ctx, s, nodes, r); err != nil {
		return err
	}
	if !s.leader {
		return nil
	}
	// The master fills the Northbound database: that one listens at once.
	if now := s.leadership(); k.configured != now && (!k.waits || k.d.Short == "nb") {
		if err := k.configure(ctx); err != nil {
			return err
		}
		k.configured = now
	}
	if v, ok := s.removable(nodes, r); ok {
		return k.remove(ctx, v, nodes, r)
	}
	return nil
}

// checkRecord ends a server that is no member any more, or whose cluster a later one has replaced: the container starts
// again, and Prepare finds the right file. It restores what is missing or out of date in the Record.
func (k *keeper) checkRecord(ctx context.Context, s status, nodes []string, r Record) error {
	id := r.Servers[k.Node]
	own, _ := k.noted(k.d)
	wanted := len(nodes) == 0 || slices.Contains(nodes, k.Node)
	switch {
	case s.failed:
		return k.end(ctx, "it could not write to the disk", s, r)
	case s.left:
		f, err := inspect(ctx, k.Layout.File(k.d))
		if err != nil {
			return err
		}
		if err := k.update(ctx, k.d, remove(k.Node, f.server)); err != nil {
			return err
		}
		return k.end(ctx, "it is no member of its cluster any more", s, r)
	case s.cluster == "":
		return nil
	case r.Cluster != "" && r.Cluster != s.cluster && r.Generation > own.generation:
		return k.end(ctx, "a later cluster is recorded", s, r)
	case !s.member && r.Cluster == s.cluster && (id == removed || id != "" && id != s.id):
		return k.end(ctx, "it is not the recorded server of its node", s, r)
	case !s.member || !wanted || id == removed && r.Cluster == s.cluster:
		return nil
	case r.Cluster != s.cluster && !s.leader:
		return nil // the leader restores the record first
	case r.Cluster != s.cluster || id != s.id:
		k.log.Warn("restoring the record of the server", "cluster", s.cluster, "server", s.id, "recorded", r.Cluster)
		return k.update(ctx, k.d, enter(file{cluster: s.cluster, server: s.id}, own.generation, k.Node, r.Cluster, false))
	}
	return nil
}

// end ends the server of this machine.
func (k *keeper) end(ctx context.Context, reason string, s status, r Record) error {
	k.log.Error("the database's server must start again", "reason", reason, "cluster", s.cluster, "server", s.id,
		"recorded", r.Cluster)
	_, err := output(ctx, "ovs-appctl", "--timeout=10", "-t", k.Layout.Control(k.d), "exit")
	return err
}

// remove removes a server from the cluster. First it notes that its file must not be used any more.
func (k *keeper) remove(ctx context.Context, v server, nodes []string, r Record) error {
	k.log.Warn("removing a server that is gone from the cluster", "server", v.id, "node", v.node, "nodes", nodes)
	if id := r.Servers[v.node]; strings.HasPrefix(id, v.id) {
		if err := k.update(ctx, k.d, remove(v.node, id)); err != nil {
			return err
		}
	}
	_, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", k.Layout.Control(k.d), "cluster/kick", k.d.Name, v.id)
	if err == nil {
		k.Metrics.Removed.WithLabelValues(k.d.Short).Inc()
	}
	return err
}

// measure sets the metrics. A server that does not answer has a zero status.
func (k *keeper) measure(s status) {
	silent := 0
	for _, v := range s.servers {
		if s.leader && !v.answers() {
			silent++
		}
	}
	set := func(g *prometheus.GaugeVec, value float64) { g.WithLabelValues(k.d.Short).Set(value) }
	set(k.Metrics.Up, oneIf(s.member))
	set(k.Metrics.Leader, oneIf(s.leader))
	set(k.Metrics.Term, s.term)
	set(k.Metrics.Servers, float64(len(s.servers)))
	set(k.Metrics.Silent, float64(silent))
	if info, err := os.Stat(k.Layout.File(k.d)); err == nil {
		set(k.Metrics.Bytes, float64(info.Size()))
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// WatchNorthd measures whether the ovn-northd of this machine is the active one, until ctx ends.
func (m Member) WatchNorthd(ctx context.Context) {
	for {
		out, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", m.Layout.northd(), "status")
		m.Metrics.Northd.Set(oneIf(err == nil && strings.Contains(out, "active")))
		m.Metrics.NorthdUp.Set(oneIf(err == nil))
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
	}
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
	if _, err := output(ctx, "ovsdb-client", "--timeout=600", "convert", server, k.Layout.Schema(k.d)); err != nil {
		return fmt.Errorf("upgrading the schema of database %s from %s to %s: %w", k.d.Short, have, want, err)
	}
	return nil
}
