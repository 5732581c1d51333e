package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// TestRaftFailover kills the leader of a three-server cluster under the loop. The loop continues with the next leader,
// loses nothing, and still repairs.
func TestRaftFailover(t *testing.T) {
	raft := testkit.StartRaft(t, testkit.NBSchemas()["25.03"], ovsdb.DatabaseName)
	b := lead(t, strings.Join(raft.Remotes(), ","), newFeed(someCluster()...), newCandidate("me"))
	b.inSync()
	for round, address := range []string{"4", "5"} {
		old := raft.Leader()
		raft.Kill(old)
		b.feed.put(pod("during", "n1"))
		b.eventually("a new leader", "true", func() string { return fmt.Sprint(raft.Leader() >= 0) })
		b.remote = raft.Remotes()[raft.Leader()]
		b.eventually("the pod that came while no one led", "0a:58:0a:f4:00:0"+address+" 10.244.0."+address+" fd01::"+address,
			b.addresses("default_during"))
		b.nbctl("lsp-del", "default_a")
		b.eventually("a deleted port", "0a:58:0a:f4:00:03 10.244.0.3 fd01::3", b.addresses("default_a"))
		b.feed.drop(pod("during", "n1"))
		b.eventually("the pod that went", "", b.addresses("default_during"))
		b.eventually("the epoch, raised for the new connection", fmt.Sprintf("\"%d\" me", round+2), b.epoch)
		raft.Start(old)
		t.Logf("round %d: server %d was killed, %d leads", round, old, raft.Leader())
	}
}

func (b *bed) addresses(port string) func() string {
	return func() string {
		return b.nbctl("--bare", "--columns=addresses", "find", "logical_switch_port", "name="+port)
	}
}
