package reconcile

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// maxTieredJoinRows is how many rows change when a node joins a cluster that has everything that costs rows on each
// node: isolated pods, ClusterNetworkPolicies and tenants.
const maxTieredJoinRows = 22

// A node that joins costs as many rows in a large cluster as in a small one, also with everything that costs rows on
// each node, and the change is one transaction.
func TestNodeJoinsWithPolicies(t *testing.T) {
	rows := map[int]int{}
	for _, nodes := range []int{4, 60} {
		s := &scale{nodes: nodes, feed: newFeed(&cluster.Namespace{Name: "default", UID: "default"})}
		for i := range nodes {
			s.feed.put(&cluster.Node{Name: fmt.Sprintf("n%04d", i), UID: fmt.Sprintf("n%04d", i)})
		}
		for i := range 4 {
			ns := teamNamespace(i, i%2)
			s.feed.put(ns, appPolicy(ns.Name, 1))
			for j := range nodes {
				pod := appPod(ns.Name, j, 1)
				pod.Node = fmt.Sprintf("n%04d", j)
				s.feed.put(pod)
			}
			s.feed.put(&cluster.TieredPolicy{Name: fmt.Sprint("tier-", i), UID: "u", Priority: i, Tier: cluster.AdminTier,
				Pods: cluster.PodSelector{Namespaces: labelled("team", i%2)},
				Ingress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: cluster.PolicyRule{AnyPort: true,
					Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{Namespaces: labelled("team", 7)}}}}}}})
		}
		c := scaleConfig()
		c.Multitenant = true
		s.relay = startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), nil)
		s.bed = newBedOf(t, s.relay.Remote, s.feed, c, Config{Log: slog.New(slog.DiscardHandler)})
		s.inSync()
		before := s.relay.Wire()
		s.feed.put(&cluster.Node{Name: "joiner", UID: "joiner",
			Annotated: `{"default":["10.131.255.0/24","fd01:0:0:ffff::/64"]}`})
		s.await(t, "a node joins", len(before.Transactions)+1)
		s.quiet("after a node joined")
		after := s.relay.Wire()
		if n := len(after.Transactions) - len(before.Transactions); n != 1 {
			t.Errorf("%d nodes: another joins with %d transactions, want 1", nodes, n)
		}
		rows[nodes] = after.Changed - before.Changed
		t.Logf("%d nodes: another joins with %d rows", nodes, rows[nodes])
	}
	if rows[4] != rows[60] || rows[60] > maxTieredJoinRows {
		t.Errorf("rows that change when a node joins, by the number of nodes: %v, want the same, and at most %d", rows,
			maxTieredJoinRows)
	}
}
