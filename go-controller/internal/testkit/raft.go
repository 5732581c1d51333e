package testkit

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Raft is a clustered database of three servers.
type Raft struct {
	t       testing.TB
	name    string
	members []*member
}

type member struct {
	dir, db, remote string
	process         *process
}

// StartRaft starts three servers of one clustered database of the given schema
// and name (ovsdb(7), "Clustered Database Service Model").
func StartRaft(t testing.TB, schemaPath, name string) *Raft {
	t.Helper()
	r := &Raft{t: t, name: name}
	var first string
	for i := range 3 {
		dir := runDir(t)
		m := &member{dir: dir, db: filepath.Join(dir, "test.db"), remote: "unix:" + filepath.Join(dir, "db.sock")}
		address := "tcp:" + freeAddress(t)
		if i == 0 {
			first = address
			Run(t, "ovsdb-tool", "create-cluster", m.db, schemaPath, address)
		} else {
			Run(t, "ovsdb-tool", "join-cluster", m.db, name, address, first)
		}
		r.members = append(r.members, m)
		r.Start(i)
	}
	return r
}

// freeAddress is a loopback address and port that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Remotes lists how to reach each server, "unix:PATH".
func (r *Raft) Remotes() []string {
	var out []string
	for _, m := range r.members {
		out = append(out, m.remote)
	}
	return out
}

// Start starts server i and waits until it has joined. One that was a member
// before is one without a majority of the others, too: from its first election
// on, a moment after the start, it then says that it is disconnected.
func (r *Raft) Start(i int) {
	r.t.Helper()
	m := r.members[i]
	m.process = start(r.t, Tool(r.t, "ovsdb-server"), "--unixctl="+filepath.Join(m.dir, "ctl"),
		"--remote=p"+m.remote, m.db)
	m.process.waitFor(r.t, fmt.Sprintf("server %d has joined", i), func() bool {
		status := r.status(i, "Status:")
		return status == "cluster member" || strings.HasPrefix(status, "disconnected from the cluster")
	})
}

// Kill ends server i with SIGKILL, as a crash would, and waits until it is
// gone.
func (r *Raft) Kill(i int) {
	r.t.Helper()
	r.Signal(i, syscall.SIGKILL)
	<-r.members[i].process.done
}

// Signal sends server i a signal, such as SIGSTOP.
func (r *Raft) Signal(i int, sig syscall.Signal) {
	r.t.Helper()
	if err := r.members[i].process.cmd.Process.Signal(sig); err != nil {
		r.t.Fatalf("sending %s to server %d: %v", sig, i, err)
	}
}

// Leader is the server that leads, -1 while none does.
func (r *Raft) Leader() int {
	for i, m := range r.members {
		select {
		case <-m.process.done:
			continue
		default:
		}
		if r.status(i, "Role:") == "leader" {
			return i
		}
	}
	return -1
}

// status is a field of what the server says of itself; "" while it does not
// answer.
func (r *Raft) status(i int, field string) string {
	ctl := filepath.Join(r.members[i].dir, "ctl")
	out, err := exec.CommandContext(r.t.Context(), Tool(r.t, "ovs-appctl"), "--timeout=2", "-t", ctl, "cluster/status",
		r.name).Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
