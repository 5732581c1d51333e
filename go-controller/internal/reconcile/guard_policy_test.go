package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
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
	for _, set := range rows("Address_Set", "name", "addresses") {
		// One address is written without brackets.
		members := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(set[1]), "[set ["), "]]")
		out = append(out, fmt.Sprint(set[0], " has ", members))
	}
	for _, meter := range rows("Meter", "name") {
		out = append(out, fmt.Sprint("meter ", meter[0]))
	}
	for _, group := range rows("Port_Group", "name", "ports") {
		out = append(out, fmt.Sprint(group[0], " has ", strings.Count(fmt.Sprint(group[1]), "uuid")))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// part is what the feed has of some objects.
func (f *feed) part(of []cluster.Object) (out []cluster.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range of {
		out = append(out, f.objects[o.Ref()])
	}
	return out
}

// While the removal of policies waits for approval, they hold: the isolated pods stay isolated, in the tiers that they
// had, and deleted pods go.
func TestPoliciesHoldWhileTheirRemovalWaits(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	few := append(someCluster(), &cluster.Namespace{Name: cluster.SystemNamespace, UID: "uid"})
	for i := range 3 {
		few = append(few, pod(fmt.Sprint("w", i), "n1"))
	}
	any := cluster.PolicyRule{AnyPeer: true, Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, First: 80, Last: 80}}}
	policies := []cluster.Object{
		&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "u",
			Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{any}}},
		&cluster.TieredPolicy{Name: "guard", UID: "u", Tier: cluster.AdminTier,
			Logging: cluster.Logging{Deny: "warning"},
			Ingress: []cluster.TieredRule{{Action: cluster.Deny, PolicyRule: any}}}}
	all := slices.Concat(few, policies)
	for i := range 150 {
		all = append(all, pod(fmt.Sprint("p", i), "n2"))
	}
	feed := newFeed(all...)
	first := lead(t, remote, feed, newCandidate("first"))
	first.inSync()
	before := first.policyRows()
	first.stop()
	if !strings.Contains(before, "2,31000,drop") || !strings.Contains(before, "meter "+names.LogMeter) {
		t.Fatalf("nothing is isolated, or logged:\n%s", before)
	}

	present := feed.part(few)
	b := lead(t, remote, newFeed(present...), newCandidate("second"))
	held := func() string { return fmt.Sprint(testutil.ToFloat64(b.metrics.HeldBack) > 150) }
	b.eventually("rows are held back", "true", held)
	b.taken()
	if after := b.policyRows(); after != before {
		t.Errorf("while the removal waits there is\n%s\nwant\n%s", after, before)
	}
	b.feed.drop(present[len(present)-1])
	b.eventually("ports of n1", "default_a default_w0 default_w1 k8s-n1 stor-n1", b.portsOf("n1"))

	// All policies are listed again. The end of one takes effect, although the removal of pods waits on.
	b.feed.put(policies...)
	b.eventually("rows that are held back", "150", func() string {
		return fmt.Sprint(testutil.ToFloat64(b.metrics.HeldBack))
	})
	b.feed.drop(policies[1])
	b.eventually("a tier", "false", func() string { return fmt.Sprint(strings.Contains(b.policyRows(), "2,31000,drop")) })
	if got := b.policyRows(); !strings.Contains(got, "0,31000,drop") || b.loop.HeldBack() == nil {
		t.Errorf("held back: %v; rows\n%s", b.loop.HeldBack(), got)
	}
}

// With the approval the policies end.
func TestPoliciesEndWithTheApproval(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	few := append(someCluster(), &cluster.Namespace{Name: cluster.SystemNamespace, UID: "uid"})
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

// A policy that holds only because its removal waits allows nothing to a new pod that has the address of a former one.
// Nobody is granted an address in a row whose removal waits.
func TestHeldPoliciesAllowNothingToNewPods(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	friend := pod("friend", "n1")
	friend.Labels = cluster.NewLabels(map[string]string{"app": "friend"})
	feed := newFeed(append(someCluster(), &cluster.Namespace{Name: cluster.SystemNamespace, UID: "uid"}, friend)...)
	few := slices.Collect(maps.Values(feed.objects))
	friends := cluster.PodSelector{Namespace: "default", Pods: cluster.NewLabelSelector(
		cluster.Requirement{Key: "app", Operator: cluster.In, Values: []string{"friend"}})}
	feed.put(&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "default", Name: "web"}, UID: "u",
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true,
			Peers: []cluster.PolicyPeer{{Pods: &friends}}}}}})
	for i := range 150 {
		feed.put(pod(fmt.Sprint("p", i), "n2"))
	}
	first := lead(t, remote, feed, newCandidate("first"))
	first.inSync()
	lost := first.addresses("default_p0")()
	first.stop()

	b := lead(t, remote, newFeed(feed.part(few)...), newCandidate("second"))
	b.eventually("rows are held back", "true", func() string {
		return fmt.Sprint(testutil.ToFloat64(b.metrics.HeldBack) > 150)
	})
	b.taken()
	address := strings.Fields(b.addresses("default_friend")())[1]
	set := names.SelectorAddressSet(index.SelectorHash(friends), names.IPv4)
	holds := func() bool { return strings.Contains(b.policyRows(), set+" has "+address) }
	if !holds() {
		t.Fatalf("no set of the policy has the friend's address %s:\n%s", address, b.policyRows())
	}
	friend = b.feed.objects[friend.Ref()].(*cluster.Pod)
	b.feed.drop(friend)
	thief := *friend
	thief.Name.Name, thief.UID, thief.Labels = "thief", "uid-thief", cluster.NewLabels(nil)
	b.feed.put(&thief)
	b.eventually("the thief's address", "true", func() string {
		return fmt.Sprint(strings.Contains(b.addresses("default_thief")(), address))
	})
	if got := b.policyRows(); holds() || !strings.Contains(got, "31000,drop") {
		t.Errorf("the policy's set still has %s, or nothing is isolated:\n%s", address, got)
	}
	// A pod that claims the address of one whose removal waits gets it. No set keeps it for the other any more.
	restored := *feed.objects[pod("p1", "n2").Ref()].(*cluster.Pod)
	restored.Name.Name, restored.UID = "restored", "uid-restored"
	b.feed.put(&restored)
	b.eventually("the restored pod has a port", "true", func() string {
		return fmt.Sprint(b.addresses("default_restored")() != "")
	})
	// Before the loop sends a later transaction, it looks at what is held back.
	b.feed.put(pod("later", "n1"))
	b.eventually("a later pod has a port", "true", func() string {
		return fmt.Sprint(b.addresses("default_later")() != "")
	})
	claimed := strings.Fields(b.addresses("default_restored")())[1]
	b.stop()
	for address, want := range map[string]bool{strings.Fields(lost)[1]: true, claimed: false} {
		if got := b.loop.Core.Ledger().Reserved(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is reserved: %v, want %v", address, got, want)
		}
	}
}
