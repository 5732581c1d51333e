package dbserver

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// status is what a Raft server says about its cluster (ovsdb-server(1), cluster/status).
type status struct {
	cluster string // UUID
	id      string // UUID of the server that was asked
	member  bool   // it takes part, and knows a leader
	left    bool   // it was a member, and cannot be one again
	failed  bool   // it has given up, since it could not write to the disk
	leader  bool
	term    float64
	servers []server
}

// leadership names the time in which a server leads without a break.
func (s status) leadership() string { return fmt.Sprintf("%s %s %v", s.cluster, s.id, s.term) }

// server is one of the cluster.
type server struct {
	id   string // the first four digits of its UUID
	node string
	self bool
	// silent is how long ago it was heard of, and neverHeard that nothing is known of it. Only a leader knows.
	silent     time.Duration
	neverHeard bool
}

// serverLine is a line such as
//
//	n2 (7f2f at unix:/run/ovn/raft/nb/n2) next_index=8 match_index=6 last msg 13006 ms ago
var serverLine = regexp.MustCompile(`^\s+\S+ \(([0-9a-f]{4}) at unix:(\S+)\)(.*)$`)

var uuidLine = regexp.MustCompile(`\n(Cluster|Server) ID: \S+ \((\S+)\)`)

var termLine = regexp.MustCompile(`\nTerm: ([0-9]+)\n`)

var lastMessage = regexp.MustCompile(`last msg ([0-9]+) ms ago`)

// status asks the server of this machine.
func (m Member) status(ctx context.Context, d Database) (status, error) {
	out, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", m.Layout.Control(d), "cluster/status", d.Name)
	if err != nil {
		// A server that was removed from its cluster drops the database.
		return status{left: strings.Contains(err.Error(), "unknown cluster")}, err
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
	s.member = strings.Contains(head, "\nStatus: cluster member\n") && !strings.Contains(head, "\nLeader: unknown\n")
	s.failed = strings.Contains(head, "\nStatus: failed\n")
	s.left = strings.Contains(head, "\nStatus: left cluster\n")
	for _, found := range uuidLine.FindAllStringSubmatch(head, -1) {
		if found[1] == "Cluster" {
			s.cluster = found[2]
		} else {
			s.id = found[2]
		}
	}
	if found := termLine.FindStringSubmatch(head); found != nil {
		if s.term, err = strconv.ParseFloat(found[1], 64); err != nil {
			return s, fmt.Errorf("reading the term: %w", err)
		}
	}
	for line := range strings.Lines(list) {
		found := serverLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if found == nil {
			break // of the next section
		}
		v := server{id: found[1], node: filepath.Base(found[2]), neverHeard: true}
		v.self = strings.Contains(found[3], "(self)")
		if last := lastMessage.FindStringSubmatch(found[3]); last != nil {
			ms, err := strconv.ParseInt(last[1], 10, 64)
			if err != nil {
				return s, fmt.Errorf("reading %q: %w", line, err)
			}
			v.silent, v.neverHeard = time.Duration(ms)*time.Millisecond, false
		}
		s.servers = append(s.servers, v)
	}
	return s, nil
}

// removable returns the server that is gone for good, if any: an earlier one of a node that has a new one since, or one
// on a node that shall have none. nodes are those that shall run a server.
//
// None is removable while fewer than a majority of the rest answer: the removal could not take effect, and would keep
// the cluster from working when the last one answers again. A node that shall have none keeps its server until all
// nodes that shall have one do.
func (s status) removable(nodes []string, r Record) (server, bool) {
	for _, v := range s.servers {
		if v.self || !formerOf(v, nodes, r) && (slices.Contains(nodes, v.node) || !s.complete(nodes, r)) {
			continue
		}
		rest, answer := 0, 0
		for _, o := range s.servers {
			if o == v {
				continue
			}
			rest++
			if o.answers() {
				answer++
			}
		}
		if answer > rest/2 {
			return v, true
		}
	}
	return server{}, false
}

// complete tells whether every node that shall have a server has one that answers.
func (s status) complete(nodes []string, r Record) bool {
	for _, n := range nodes {
		if !slices.ContainsFunc(s.servers, func(v server) bool {
			return v.node == n && strings.HasPrefix(r.Servers[n], v.id) && v.answers()
		}) {
			return false
		}
	}
	return len(nodes) > 0
}

// formerOf tells whether the node of a server has a new one. Then the former one cannot answer any more.
func formerOf(v server, nodes []string, r Record) bool {
	id := r.Servers[v.node]
	return !v.answers() && slices.Contains(nodes, v.node) && id != "" && id != removed && !strings.HasPrefix(id, v.id)
}

// answers tells whether the leader has heard of the server in the time of two elections.
func (v server) answers() bool { return v.self || !v.neverHeard && v.silent < 2*electionTimer }
