package dbserver

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// status is what a Raft server says about its cluster (ovsdb-server(1), cluster/status).
type status struct {
	leader  bool
	servers []server
}

// server is one of the cluster.
type server struct {
	id   string // the first four digits of its UUID
	node string
	self bool
	// silent is how long ago it was heard of, and unheard that nothing is known of it. Only a leader knows.
	silent  time.Duration
	unheard bool
}

// serverLine is a line such as
//
//	n2 (7f2f at unix:/run/ovn/raft/nb/n2) next_index=8 match_index=6 last msg 13006 ms ago
var serverLine = regexp.MustCompile(`^\s+\S+ \(([0-9a-f]{4}) at unix:(\S+)\)(.*)$`)

var lastMessage = regexp.MustCompile(`last msg ([0-9]+) ms ago`)

// status asks the server of this machine.
func (m Member) status(ctx context.Context, d Database) (status, error) {
	out, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", m.Layout.Control(d), "cluster/status", d.Name)
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(out)
	if err != nil {
		return s, fmt.Errorf("reading the status of database %s: %w", d.Short, err)
	}
	return s, nil
}

func parseStatus(text string) (s status, err error) {
	head, list, ok := strings.Cut(text, "\nServers:\n")
	if !ok {
		return s, fmt.Errorf("no list of servers in %q", text)
	}
	s.leader = strings.Contains(head, "\nRole: leader\n")
	for line := range strings.Lines(list) {
		found := serverLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found == nil {
			break // of the next section
		}
		v := server{id: found[1], node: filepath.Base(found[2]), self: strings.Contains(found[3], "(self)"), unheard: true}
		if last := lastMessage.FindStringSubmatch(found[3]); last != nil {
			ms, err := strconv.ParseInt(last[1], 10, 64)
			if err != nil {
				return s, fmt.Errorf("reading %q: %w", line, err)
			}
			v.silent, v.unheard = time.Duration(ms)*time.Millisecond, false
		}
		s.servers = append(s.servers, v)
	}
	return s, nil
}

// removable returns the server that is gone for good, if any: one on a node that shall have none, or an earlier one of
// a node that has a new one since. nodes are those that shall run a server.
//
// None is removable while fewer than a majority of the rest answer: the removal could not take effect, and would keep
// the cluster from working when the last one answers again.
func (s status) removable(nodes []string, r Record) (server, bool) {
	for _, v := range s.servers {
		if v.self || !gone(v, nodes, r) {
			continue
		}
		rest, answer := 0, 0
		for _, o := range s.servers {
			if o == v {
				continue
			}
			rest++
			if o.self || !o.unheard && o.silent < 2*electionTimer {
				answer++
			}
		}
		if answer > rest/2 {
			return v, true
		}
	}
	return server{}, false
}

func gone(v server, nodes []string, r Record) bool {
	for _, n := range nodes {
		if n == v.node {
			id := r.Servers[n]
			return id != "" && !strings.HasPrefix(id, v.id)
		}
	}
	return len(nodes) > 0
}
