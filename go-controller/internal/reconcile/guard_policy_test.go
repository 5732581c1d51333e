package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// policyRows is what the database has of policies: all ACLs, and each group with its number of ports.
func (b *bed) policyRows() string {
	var out []string
	rows := func(table string, columns ...string) (found [][]any) {
		question, err := json.Marshal([]any{"OVN_Northbound",
			map[string]any{"op": "select", "table": table, "where": []any{}, "columns": columns}})
		if err != nil {
			b.t.Fatal(err)
		}
		var answer []struct{ Rows []map[string]any }
		raw := testkit.Run(b.t, "ovsdb-client", "transact", b.remote, string(question))
		if err := json.Unmarshal([]byte(raw), &answer); err != nil {
			b.t.Fatal(err)
		}
		for _, row := range answer[0].Rows {
			var values []any
			for _, c := range columns {
				values = append(values, row[c])
			}
			found = append(found, values)
		}
		return found
	}
	for _, acl := range rows("ACL", "tier", "priority", "action", "match") {
		out = append(out, strings.ReplaceAll(fmt.Sprint(acl), " ", ","))
	}
	for _, group := range rows("Port_Group", "name", "ports") {
		out = append(out, fmt.Sprint(group[0], " has ", strings.Count(fmt.Sprint(group[1]), "uuid")))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// While the removal of policies waits for approval, they hold: the isolated pods stay isolated, in the tiers that they
// had, and deleted pods go.
func TestPoliciesHoldWhileTheirRemovalWaits(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	few := append(someCluster(), &cluster.Namespace{Name: systemNamespace, UID: "uid"})
	for i := range 3 {
		few = append(few, pod(fmt.Sprint("w", i), "n1"))
	}
	any := cluster.PolicyRule{AnyPeer: true, Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, First: 80, Last: 80}}}
	policies := []cluster.Object{
		&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "u",
			Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{any}}},
		&cluster.TieredPolicy{Name: "guard", UID: "u", Tier: cluster.AdminTier,
			Ingress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: any}}}}
	all := slices.Concat(few, policies)
	for i := range 150 {
		all = append(all, pod(fmt.Sprint("p", i), "n2"))
	}
	first := lead(t, remote, newFeed(all...), newCandidate("first"))
	first.inSync()
	before := first.policyRows()
	first.stop()
	if !strings.Contains(before, "2,31000,drop") {
		t.Fatalf("nothing is isolated:\n%s", before)
	}

	b := lead(t, remote, newFeed(few...), newCandidate("second"))
	held := func() string { return fmt.Sprint(testutil.ToFloat64(b.metrics.HeldBack) > 150) }
	b.eventually("rows are held back", "true", held)
	b.taken()
	if after := b.policyRows(); after != before {
		t.Errorf("while the removal waits there is\n%s\nwant\n%s", after, before)
	}
	b.feed.drop(few[len(few)-1])
	b.eventually("ports of n1", "default_a default_w0 default_w1 k8s-n1 stor-n1", b.portsOf("n1"))

	// The cluster policy is listed again. Its end takes effect, although the removal of pods waits on.
	b.feed.put(policies[1])
	b.taken()
	b.feed.drop(policies[1])
	b.eventually("a tier", "false", func() string { return fmt.Sprint(strings.Contains(b.policyRows(), "2,31000,drop")) })
	if got := b.policyRows(); !strings.Contains(got, "0,31000,drop") || b.loop.HeldBack() == nil {
		t.Errorf("held back: %v; rows\n%s", b.loop.HeldBack(), got)
	}
}

// With the approval the policies end.
func TestPoliciesEndWithTheApproval(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	few := append(someCluster(), &cluster.Namespace{Name: systemNamespace, UID: "uid"})
	all := append(slices.Clone(few), &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "default", Name: "web"},
		UID: "u", Ingress: cluster.PolicyRules{Isolates: true}})
	for i := range 150 {
		all = append(all, pod(fmt.Sprint("p", i), "n2"))
	}
	first := lead(t, remote, newFeed(all...), newCandidate("first"))
	first.inSync()
	first.stop()
	b := lead(t, remote, newFeed(few...), newCandidate("second"))
	isolated := func() string { return fmt.Sprint(strings.Contains(b.policyRows(), "31000,drop")) }
	b.eventually("rows are held back", "true", func() string { return fmt.Sprint(b.loop.HeldBack() != nil) })
	b.taken()
	if isolated() != "true" {
		t.Errorf("not isolated any more:\n%s", b.policyRows())
	}
	why := b.loop.HeldBack().Error()
	digest := strings.Fields(why[strings.Index(why, "--digest"):])[1]
	b.nbctl("set", "logical_router", "ovn_cluster_router", "external_ids:\""+names.ApprovalKey+"\"="+digest)
	b.inSync()
	b.eventually("isolation", "false", isolated)
}
