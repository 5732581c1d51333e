package dbserver

import (
	"testing"
	"time"
)

// TestDecide comes to the right file in each situation. The clusters are c1 and c2; this node is n1.
func TestDecide(t *testing.T) {
	none := file{}
	standalone := file{exists: true}
	mine := file{exists: true, clustered: true, joined: true, address: "unix:n1", cluster: "c1", server: "s1"}
	others, joining, former := mine, mine, mine
	others.address, joining.joined, former.server = "unix:n9", false, "s0"
	unfinished := mine
	unfinished.others = true
	three, later := []string{"n1", "n2", "n3"}, []string{"n2", "n1", "n3"}
	nobody := Record{}
	me := Record{Cluster: "c1", Servers: map[string]string{"n1": "s1"}}
	all := Record{Cluster: "c1", Servers: map[string]string{"n1": "s1", "n2": "s2", "n3": "s3"}}
	two := Record{Cluster: "c1", Servers: map[string]string{"n2": "s2", "n3": "s3"}}
	without := Record{Cluster: "c1", Servers: map[string]string{"n1": removed, "n2": "s2", "n3": "s3"}}
	left := Record{Cluster: "c1", Servers: map[string]string{"n1": "s1", "n2": removed, "n3": removed}}
	another := Record{Cluster: "c2", Servers: map[string]string{"n2": "s2"}}
	const wait step = ""
	for _, k := range []struct {
		name  string
		f     file
		nodes []string
		r     Record
		want  step
	}{
		{"installation on one node", none, nil, nobody, create},
		{"installation, the node is named", none, three[:1], nobody, create},
		{"a file of an earlier release", standalone, nil, nobody, create},
		{"one server restarts", mine, nil, me, keepFile},
		{"it has not been recorded", mine, nil, nobody, keepFile},
		{"another node's file", others, nil, nobody, create},
		{"the pod has come from another node", none, nil, another, wait},
		{"one server of three is left", mine, three[:1], all, create},
		{"the two others have been removed", mine, three[:1], left, keepFile},
		{"they went before their removal took effect", unfinished, three[:1], left, create},
		{"all three are lost", none, three[:1], all, wait},
		{"all three are lost, and the record was deleted", none, three[:1], nobody, create},
		{"another node is named by mistake", mine, three[:1], another, wait},
		{"another node is named", mine, three[1:2], all, wait},

		{"installation, the first node", none, three, nobody, create},
		{"installation, another node", none, later, nobody, wait},
		{"the record was removed, another node", mine, later, nobody, wait},
		{"the record was removed, the first node", mine, three, nobody, keepFile},
		{"the first has created it", none, later, another, join},
		{"an earlier release's file on the first node", standalone, three, nobody, create},
		{"an earlier release's file elsewhere", standalone, later, another, join},
		{"one of three restarts", mine, three, all, keepFile},
		{"one of three restarts that is not recorded", mine, three, two, keepFile},
		{"the first has lost its disk", none, three, all, join},
		{"it has lost its disk since it was removed", none, three, without, join},
		{"it was removed, and is named again", mine, three, without, join},
		{"it has an earlier file", former, three, all, join},
		{"it never joined", joining, three, all, join},
		{"it has a file of another node", others, three, all, join},
		{"it was down while the cluster was made anew", mine, three, another, join},
		{"from one server to three", mine, three, me, keepFile},
		{"not one of the nodes", mine, []string{"n2", "n3", "n4"}, all, wait},
	} {
		if got, why := decide(k.f, "n1", "unix:n1", k.nodes, k.r); got != k.want || (got == wait) != (why != "") {
			t.Errorf("%s: %q, %q, want %q", k.name, got, why, k.want)
		}
	}
}

const statusText = `7f2f
Name: OVN_Northbound
Cluster ID: 59df (59df80cb-3402-459f-9915-a6963edaea1f)
Server ID: a006 (a0063a31-1320-4f3a-a319-5a047cbd2ac9)
Address: unix:/run/ovn/raft/nb/n1
Status: cluster member
Role: leader
Term: 2
Leader: self
Connections: ->n2 <-n2
Disconnections: 1
Servers:
    n3 (7f2f at unix:/run/ovn/raft/nb/n3) next_index=8 match_index=6 last msg 13006 ms ago
    n1 (a006 at unix:/run/ovn/raft/nb/n1) (self) next_index=3 match_index=7
    n3 (8dee at unix:/run/ovn/raft/nb/n3) next_index=8 match_index=7 last msg 86 ms ago
    n2 (56a7 at unix:/run/ovn/raft/nb/n2) next_index=8 match_index=7
`

func TestParseStatus(t *testing.T) {
	s, err := parseStatus(statusText)
	want := []server{
		{id: "7f2f", node: "n3", silent: 13006 * time.Millisecond}, {id: "a006", node: "n1", self: true, neverHeard: true},
		{id: "8dee", node: "n3", silent: 86 * time.Millisecond}, {id: "56a7", node: "n2", neverHeard: true},
	}
	if s.cluster != "59df80cb-3402-459f-9915-a6963edaea1f" || s.id != "a0063a31-1320-4f3a-a319-5a047cbd2ac9" {
		t.Errorf("parseStatus: cluster %q, server %q, want 59df... and a006...", s.cluster, s.id)
	}
	if err != nil || !s.leader || !s.member || s.term != 2 || len(s.servers) != len(want) {
		t.Fatalf("parseStatus: %+v, %v, want a leader and %d servers", s, err, len(want))
	}
	for i, w := range want {
		if s.servers[i] != w {
			t.Errorf("server %d: %+v, want %+v", i, s.servers[i], w)
		}
	}
	if _, err := parseStatus("no database named OVN_Northbound\n"); err == nil {
		t.Error("parseStatus: no error for a text without servers")
	}
}

// TestRemovable removes what is gone for good, and only while the others can agree on it.
func TestRemovable(t *testing.T) {
	r := Record{Cluster: "c1", Servers: map[string]string{"n1": "aaaa-1", "n2": "bbbb-2", "n3": "cccc-3"}}
	three := []string{"n1", "n2", "n3"}
	self := server{id: "aaaa", node: "n1", self: true, neverHeard: true}
	n2, n3 := server{id: "bbbb", node: "n2"}, server{id: "cccc", node: "n3"}
	former, n4 := server{id: "dddd", node: "n3", neverHeard: true}, server{id: "eeee", node: "n4"}
	dead := func(s server) server { s.silent = time.Minute; return s }
	for _, k := range []struct {
		name    string
		servers []server
		nodes   []string
		want    string // the server's id
	}{
		{"all are wanted", []server{self, n2, n3}, three, ""},
		{"a node that is down", []server{self, n2, dead(n3)}, three, ""},
		{"a node has a new server", []server{self, n2, n3, former}, three, "dddd"},
		{"and another node is down", []server{self, dead(n2), n3, former}, three, "dddd"},
		{"and its new one does not answer", []server{self, dead(n2), dead(n3), former}, three, ""},
		{"a node shall have none any more", []server{self, n2, n3, n4}, three, "eeee"},
		{"and its successor has not joined", []server{self, n2, n4}, three, ""},
		{"and its successor does not answer", []server{self, n2, dead(n3), n4}, three, ""},
		{"one is left", []server{self, n2, n3}, three[:1], "bbbb"},
		{"no node is named", []server{self, n2, n3}, nil, ""},
	} {
		got, ok := status{leader: true, servers: k.servers}.removable(k.nodes, r)
		if got.id != k.want || ok != (k.want != "") {
			t.Errorf("%s: %+v, %t, want %q", k.name, got, ok, k.want)
		}
	}
}
