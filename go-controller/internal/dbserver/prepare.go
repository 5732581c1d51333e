package dbserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// electionTimer is how long a follower waits at least for a word of the leader, before it stands for election.
// docs/operate/high-availability.md says why.
const electionTimer = 4 * time.Second

// again is how long to wait before trying something again.
const again = time.Second

// askWithin is how long an answer of the API server may take.
const askWithin = 5 * time.Second

// Member is one node's servers.
type Member struct {
	Layout  Layout
	Node    string
	Listen  string // address that the servers listen on for clients: [::] or 0.0.0.0 for all
	Cluster Cluster
	Log     *slog.Logger
}

// step is how to come to the file of a database.
type step string

const (
	keepFile step = "keep"   // use the one that is there
	create   step = "create" // a new cluster, with the contents of the file, if there is one
	join     step = "join"   // the other servers; a file that is there is not used
	waitFor  step = "wait"   // until the first node has created the cluster
)

// decide says how to come to the file on a node. nodes are those that shall run a server, r what is recorded of their
// cluster.
func decide(f file, address, node string, nodes []string, r Record) step {
	mine := f.clustered && f.address == address
	if alone(nodes, node) {
		others := len(r.Servers) > 1 || len(r.Servers) == 1 && r.Servers[node] == ""
		if mine && !others && (r.Cluster == "" || r.Cluster == f.cluster) {
			return keepFile
		}
		return create
	}
	switch {
	case mine && (r.Cluster == "" || r.Cluster == f.cluster):
		return keepFile
	case r.Cluster != "":
		return join
	case nodes[0] == node:
		return create
	}
	return waitFor
}

// alone tells whether no other node shall run a server.
func alone(nodes []string, node string) bool {
	return len(nodes) == 0 || len(nodes) == 1 && nodes[0] == node
}

// Prepare makes the database's file ready for the server. It returns when that is done, or ctx ends.
func (m Member) Prepare(ctx context.Context, d Database) error {
	// Programs of this machine find its own server where they find the others.
	own := m.Layout.PeerSocket(d, m.Node)
	for _, dir := range []string{
		m.Layout.Files, filepath.Dir(m.Layout.RaftSocket(d, m.Node)), filepath.Dir(own),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making a directory for the database: %w", err)
		}
	}
	if err := os.Symlink(m.Layout.Socket(d), own); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("naming the server's own socket: %w", err)
	}
	for logged := ""; ; {
		done, why, err := m.tryPrepare(ctx, d)
		if done || err != nil {
			return err
		}
		if why != logged {
			logged = why
			m.Log.Info("waiting", "database", d.Short, "reason", why)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("preparing database %s: %w", d.Short, ctx.Err())
		case <-time.After(again):
		}
	}
}

// tryPrepare prepares the file, or says what it waits for.
func (m Member) tryPrepare(ctx context.Context, d Database) (done bool, why string, err error) {
	path, own := m.Layout.File(d), raftAddress(d, m.Node)
	f, err := inspect(ctx, path)
	if err != nil {
		return false, "", err
	}
	nodes, r, err := m.look(ctx, d)
	if err != nil {
		if f.clustered && f.address == own {
			m.Log.Warn("starting without having asked the API server", "database", d.Short, "error", err)
			return true, "", nil
		}
		return false, err.Error(), nil
	}
	if len(nodes) > 1 && !slices.Contains(nodes, m.Node) {
		return false, fmt.Sprintf("node %s is none of %v, which shall have the databases", m.Node, nodes), nil
	}
	how := decide(f, own, m.Node, nodes, r)
	m.Log.Info("preparing the database's file", "database", d.Short, "file", path, "how", string(how),
		"exists", f.exists, "cluster", r.Cluster, "nodes", nodes)
	switch how {
	case waitFor:
		return false, fmt.Sprintf("node %s has not created the cluster yet", nodes[0]), nil
	case create:
		err = m.create(ctx, d, f)
	case join:
		err = m.join(ctx, d, nodes, r.Cluster)
	case keepFile:
		if r.Cluster == f.cluster && r.Servers[m.Node] == f.server {
			return true, "", nil
		}
	}
	if err != nil {
		return false, "", err
	}
	return true, "", m.record(ctx, d, alone(nodes, m.Node))
}

// look reads what Kubernetes knows.
func (m Member) look(ctx context.Context, d Database) ([]string, Record, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	nodes, err := m.Cluster.Nodes(ctx)
	if err != nil {
		return nil, Record{}, err
	}
	r, err := m.Cluster.Registry(d).Read(ctx)
	return nodes, r, err
}

// raftAddress is that of a node's server. All servers call it the same, wherever their sockets are.
func raftAddress(d Database, node string) string { return "unix:" + raftName(d, node) }

// create makes a cluster of this server alone. It has the contents of the file that is there.
func (m Member) create(ctx context.Context, d Database, f file) error {
	path := m.Layout.File(d)
	contents := path
	if f.clustered {
		contents += contentsFile
		if err := remove(contents); err != nil {
			return err
		}
		defer os.Remove(contents) //nolint:errcheck // the next one is removed first
		if _, err := tool(ctx, "cluster-to-standalone", contents, path); err != nil {
			m.Log.Warn("the former cluster's contents cannot be used", "database", d.Short, "error", err)
		}
	}
	timer := "--election-timer=" + strconv.FormatInt(electionTimer.Milliseconds(), 10)
	return replace(path, func(temporary string) error {
		if info, err := os.Stat(contents); err == nil && info.Size() > 0 {
			_, err := tool(ctx, timer, "create-cluster", temporary, contents, raftAddress(d, m.Node))
			if err == nil {
				return nil
			}
			m.Log.Warn("the former contents cannot be used", "database", d.Short, "error", err)
			if err := remove(temporary); err != nil {
				return err
			}
		}
		_, err := tool(ctx, timer, "create-cluster", temporary, m.Layout.Schema(d), raftAddress(d, m.Node))
		return err
	})
}

// join makes a file that has the server join the others.
func (m Member) join(ctx context.Context, d Database, nodes []string, cluster string) error {
	return replace(m.Layout.File(d), func(temporary string) error {
		args := []string{"--cid=" + cluster, "join-cluster", temporary, d.Name, raftAddress(d, m.Node)}
		for _, n := range nodes {
			if n != m.Node {
				args = append(args, raftAddress(d, n))
			}
		}
		_, err := tool(ctx, args...)
		return err
	})
}

// record writes this node's server down. Nothing may start before that: others would take it for one of an earlier
// file, and remove it.
func (m Member) record(ctx context.Context, d Database, alone bool) error {
	f, err := inspect(ctx, m.Layout.File(d))
	if err != nil {
		return err
	}
	if !f.clustered {
		return fmt.Errorf("recording database %s: %w", d.Short, errNotClustered)
	}
	for logged := false; ; {
		err := m.Cluster.Registry(d).Update(ctx, func(r *Record) { r.enter(f, m.Node, alone) })
		if err == nil {
			return nil
		}
		if !logged {
			logged = true
			m.Log.Warn("waiting to record the server", "database", d.Short, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("recording database %s: %w", d.Short, errors.Join(ctx.Err(), err))
		case <-time.After(again):
		}
	}
}

// errNotClustered says that a file that has just been made is not what it should be.
var errNotClustered = errors.New("its file is not of a cluster")
