package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A start at which most pods are gone removes none of them, serves new ones, and waits. What comes back is not removed.
// The rest is, once that is approved.
func TestManyRowsAreHeldBack(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	few := append(someCluster(), &cluster.Namespace{Name: cluster.SystemNamespace, UID: "uid"})
	many := slices.Clone(few)
	for i := range 150 {
		many = append(many, pod(fmt.Sprint("p", i), "n1"))
	}
	first := lead(t, remote, newFeed(many...), newCandidate("first"))
	first.inSync()
	first.stop()
	b := lead(t, remote, newFeed(append(few, pod("new", "n2"))...), newCandidate("second"))
	b.eventually("the new pod is served", "true", func() string { return fmt.Sprint(b.addresses("default_new")() != "") })
	held := func() string { return fmt.Sprint(testutil.ToFloat64(b.metrics.HeldBack)) }
	b.eventually("rows that are held back", "150", held)
	ports := func() string { return fmt.Sprint(strings.Count(b.portsOf("n1")(), "default_p")) }
	if got := ports(); got != "150" {
		t.Errorf("%s ports, want all 150", got)
	}
	select {
	case <-b.loop.InSync():
		t.Error("in sync, although rows are held back")
	default:
	}
	b.feed.put(pod("p7", "n1"))
	b.eventually("rows that are held back", "149", held)
	why := b.loop.HeldBack().Error()
	digest := strings.Fields(why[strings.Index(why, "--digest"):])[1]
	var told []string
	for _, p := range b.feed.reported(ReasonHeldBack) {
		told = append(told, p.Message)
		if p.Ref.String() != "Namespace kube-system" || p.UID != "uid" {
			t.Errorf("the Event is on %s with UID %q", p.Ref, p.UID)
		}
	}
	if len(told) != 2 || told[1] != why || !strings.Contains(told[0], "the removal of 150 of ") {
		t.Errorf("Events %q, want one of 150 rows and %q", told, why)
	}
	approve := func(digest string) {
		b.nbctl("set", "logical_router", "ovn_cluster_router", "external_ids:\""+names.ApprovalKey+"\"="+digest)
	}
	approve("another")
	b.taken()
	if got := ports(); got != "150" {
		t.Errorf("%s ports after another removal was approved, want all 150", got)
	}
	approve(digest)
	b.inSync()
	b.eventually("ports of n1", "default_a default_p7 k8s-n1 stor-n1", b.portsOf("n1"))
	if err := b.loop.HeldBack(); err != nil {
		t.Error(err)
	}
}

// What is deleted while a master runs needs no approval, however much it is.
func TestDeletionsOfARunningCluster(t *testing.T) {
	var pods []cluster.Object
	for i := range 150 {
		pods = append(pods, pod(fmt.Sprint("p", i), "n1"))
	}
	b := lead(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), newFeed(append(someCluster(), pods...)...),
		newCandidate("me"))
	b.inSync()
	b.feed.drop(pods...)
	b.eventually("ports of n1", "default_a k8s-n1 stor-n1", b.portsOf("n1"))
}
