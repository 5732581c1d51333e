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
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

// electionTimer is how long a follower waits at least for a word of the leader, before it stands for election.
// docs/operate/high-availability.md says why.
const electionTimer = 4 * time.Second

// How long to wait before trying something again, for an answer of the API server, and for the API server before
// starting without it.
const (
	again      = time.Second
	askWithin  = 5 * time.Second
	startAlone = time.Minute
)

// privateDir is the mode of directories for files and sockets: nobody else may use them.
const privateDir = 0o700

// Member is one node's servers.
type Member struct {
	Layout  Layout
	Node    string
	Listen  string // address that the servers listen on for clients: [::] or 0.0.0.0 for all
	Cluster Cluster
	Metrics *metrics.Database // for Keep and WatchNorthd
	Log     *slog.Logger
}

// step is how to come to the file of a database.
type step string

const (
	keepFile step = "keep"   // use the one that is there
	create   step = "create" // a new cluster, with the contents of the file, if there is one
	join     step = "join"   // the other servers; a file that is there is not used
)

// decide says how to come to the file on a node, or what it waits for. nodes are those that shall run a server, r what
// is recorded of their cluster.
func decide(f file, node, address string, nodes []string, r Record) (how step, why string) {
	if len(nodes) > 0 && !slices.Contains(nodes, node) {
		return "", fmt.Sprintf("node %s is none of %s, which shall have the databases", node, strings.Join(nodes, ", "))
	}
	id := r.Servers[node]
	usable := f.clustered && f.joined && f.address == address && (r.Cluster == "" || r.Cluster == f.cluster) &&
		(id == "" || id == f.server)
	switch {
	case len(nodes) < 2 && r.others(node) && (len(nodes) == 0 || !usable):
		return "", fmt.Sprintf("the databases are on %s, and not here: see docs/operate/install.md, \"Three databases\"",
			strings.Join(r.nodes(), ", "))
	case len(nodes) < 2 && usable && !r.others(node) && !f.others:
		return keepFile, ""
	case len(nodes) < 2:
		return create, ""
	case r.Cluster == "" && nodes[0] != node:
		return "", fmt.Sprintf("node %s has not recorded the cluster yet", nodes[0])
	case usable:
		return keepFile, ""
	case r.Cluster == "":
		return create, ""
	}
	return join, ""
}

// Prepare makes the database's file ready for the server. It returns when that is done, or ctx ends.
func (m Member) Prepare(ctx context.Context, d Database) error {
	if err := m.prepareDirectories(d); err != nil {
		return err
	}
	began := time.Now()
	for logged := ""; ; {
		why, err := m.tryPrepare(ctx, d, time.Since(began) > startAlone)
		if why == "" || err != nil {
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

// prepareDirectories makes the directories of files and sockets.
func (m Member) prepareDirectories(d Database) error {
	own := m.Layout.PeerSocket(d, m.Node)
	for _, dir := range []string{m.Layout.Files, filepath.Dir(m.Layout.RaftSocket(d, m.Node)), filepath.Dir(own)} {
		if err := os.MkdirAll(dir, privateDir); err != nil {
			return fmt.Errorf("making a directory for the database: %w", err)
		}
	}
	// Programs of this machine find its own server where they find the others.
	if err := os.Symlink(m.Layout.Socket(d), own); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("naming the server's own socket: %w", err)
	}
	return nil
}

// tryPrepare prepares the file. It returns what it waits for, "" when that is done. alone says that the API server has
// not answered for long: then the file that was recorded last is used.
func (m Member) tryPrepare(ctx context.Context, d Database, alone bool) (why string, err error) {
	f, err := inspect(ctx, m.Layout.File(d))
	if err != nil {
		return "", err
	}
	nodes, r, err := m.look(ctx, d)
	if err != nil {
		if noted, ok := m.noted(d); alone && ok && f.clustered && noted.cluster == f.cluster && noted.server == f.server {
			m.Log.Warn("the API server does not answer: starting with the file that is there", "database", d.Short,
				"error", err)
			return "", nil
		}
		return err.Error(), nil
	}
	if len(nodes) < 2 && f.clustered {
		if f.others, err = hasOthers(m.Layout.File(d), f.server); err != nil {
			return "", err
		}
	}
	how, why := decide(f, m.Node, raftAddress(d, m.Node), nodes, r)
	if why != "" {
		return why, nil
	}
	m.Log.Info("preparing the database's file", "database", d.Short, "file", m.Layout.File(d), "how", string(how),
		"exists", f.exists, "cluster", r.Cluster, "nodes", nodes)
	generation := r.Generation
	if noted, ok := m.noted(d); r.Cluster == "" && ok && noted.cluster == f.cluster {
		generation = noted.generation
	}
	switch how {
	case create:
		generation = time.Now().UnixMilli()
		if err = m.holdNorthd(ctx, f); err == nil {
			err = m.create(ctx, d, f, generation)
		}
	case join:
		err = m.join(ctx, d, f, nodes, r)
	}
	if err != nil {
		return "", err
	}
	return m.register(ctx, d, r, generation, len(nodes) < 2)
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

// create makes a cluster of this server alone. It has the contents of the file that is there. Its log begins at the
// time in milliseconds: no cluster writes a thousand times a second for all of its life, so that this is more than any
// earlier cluster's index.
func (m Member) create(ctx context.Context, d Database, f file, generation int64) error {
	path := m.Layout.File(d)
	contents := m.Layout.Schema(d)
	switch {
	case f.clustered && f.joined:
		contents = path + contentsFile
		if err := unlink(contents); err != nil {
			return err
		}
		if _, err := tool(ctx, "cluster-to-standalone", contents, path); err != nil {
			return fmt.Errorf("using the contents of %s: %w: a file that shall not be used must be moved away", path, err)
		}
	case f.exists && !f.clustered:
		contents = path
	}
	err := replace(path, contents == m.Layout.Schema(d), func(temporary string) error {
		timer := "--election-timer=" + strconv.FormatInt(electionTimer.Milliseconds(), 10)
		if _, err := tool(ctx, timer, "create-cluster", temporary, contents, raftAddress(d, m.Node)); err != nil {
			return err
		}
		return startAt(temporary, generation)
	})
	return errors.Join(err, unlink(path+contentsFile))
}

// join makes a file that has the server join the others.
func (m Member) join(ctx context.Context, d Database, f file, nodes []string, r Record) error {
	worthless := !f.exists || f.clustered && !f.joined
	return replace(m.Layout.File(d), worthless, func(temporary string) error {
		args := []string{"--cid=" + r.Cluster, "join-cluster", temporary, d.Name, raftAddress(d, m.Node)}
		for _, n := range union(nodes, r.nodes()) {
			if n != m.Node {
				args = append(args, raftAddress(d, n))
			}
		}
		_, err := tool(ctx, args...)
		return err
	})
}

// register enters this node's server into the Record, before it starts: others would take it for one of an earlier
// file, and remove it. It tries again until it succeeds, with the same file. It returns what has to happen before the
// file can be prepared anew.
func (m Member) register(ctx context.Context, d Database, r Record, generation int64, alone bool) (
	why string, err error,
) {
	f, err := inspect(ctx, m.Layout.File(d))
	if err != nil {
		return "", err
	}
	if !f.clustered {
		return "", fmt.Errorf("recording the server of database %s: %w", d.Short, errNotClustered)
	}
	if r.Cluster != f.cluster || r.Servers[m.Node] != f.server {
		for logged := false; ; {
			err := m.update(ctx, d, enter(f, generation, m.Node, r.Cluster, alone))
			if err == nil {
				break
			}
			if errors.Is(err, errChanged) {
				return err.Error(), nil
			}
			if !logged {
				logged = true
				m.Log.Warn("waiting to record the server", "database", d.Short, "error", err)
			}
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("recording the server of database %s: %w", d.Short, ctx.Err())
			case <-time.After(again):
			}
		}
	}
	return "", m.note(d, identity{f.cluster, f.server, generation})
}

// update changes the Record.
func (m Member) update(ctx context.Context, d Database, change func(*Record) error) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return m.Cluster.Registry(d).Update(ctx, change)
}

// errNotClustered says that a file that has just been made is not what it should be.
var errNotClustered = errors.New("its file is not of a cluster")

// identity is what was entered into the Record last, as the node notes it beside the database's file.
type identity struct {
	cluster, server string
	generation      int64
}

func (m Member) note(d Database, i identity) error {
	text := fmt.Sprintf("%s %s %d\n", i.cluster, i.server, i.generation)
	if err := atomicfile.Write(m.Layout.File(d)+recordedFile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("noting what is recorded: %w", err)
	}
	return nil
}

// noted returns what note has written, if anything.
func (m Member) noted(d Database) (i identity, ok bool) {
	text, err := os.ReadFile(m.Layout.File(d) + recordedFile)
	if err != nil {
		return i, false
	}
	_, err = fmt.Sscan(string(text), &i.cluster, &i.server, &i.generation)
	return i, err == nil
}

// nodes lists the nodes of servers that are recorded.
func (r Record) nodes() (out []string) {
	for n, id := range r.Servers {
		if id != removed {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
