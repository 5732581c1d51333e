package reconcile

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

const (
	policyNodes      = 100
	policyNamespaces = 20
	podsEach         = 500 // in a namespace
	policiesEach     = 50  // in a namespace
	apps             = 25  // label values, so that 20 pods of a namespace have each

	maxPodRows        = 12   // the pod's port, its switch, its groups and the sets that list it
	maxPolicyRows     = 8    // a policy's ACLs, and its selectors' groups and sets
	maxPolicyJoinRows = 15   // that change when a node joins: 6 of them are about its isolated pods
	maxPolicyBytes    = 1000 // that a client reads at its start, for each pod
	maxPodBytes       = 4096 // that are sent for a pod
)

// newPolicyScale is a loop on a real server: 10,000 pods and 1,000 policies. Each policy is about one app's pods, and
// lets those of another app and of the namespaces of a team connect.
func newPolicyScale(t *testing.T) *scale {
	t.Helper()
	s := &scale{nodes: policyNodes, feed: newFeed()}
	for i := range policyNodes {
		s.feed.put(&cluster.Node{Name: fmt.Sprintf("n%04d", i), UID: fmt.Sprintf("n%04d", i)})
	}
	for i := range policyNamespaces {
		ns := teamNamespace(i, i%4)
		s.feed.put(ns)
		for j := range podsEach {
			s.feed.put(appPod(ns.Name, j, j%apps))
		}
		for j := range policiesEach {
			s.feed.put(appPolicy(ns.Name, j))
		}
	}
	s.relay = startRelay(t, testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"]), nil)
	s.bed = s.start(t)
	return s
}

func teamNamespace(i, team int) *cluster.Namespace {
	name := fmt.Sprintf("ns%02d", i)
	return &cluster.Namespace{Name: name, UID: name,
		Labels: cluster.NewLabels(map[string]string{"team": fmt.Sprint(team)})}
}

func appPod(namespace string, i, app int) *cluster.Pod {
	name := cluster.Name{Namespace: namespace, Name: fmt.Sprintf("p%04d", i)}
	return &cluster.Pod{Name: name, UID: name.String(), Node: fmt.Sprintf("n%04d", i%policyNodes),
		Labels: cluster.NewLabels(map[string]string{"app": fmt.Sprint(app)})}
}

func labelled(key string, value int) cluster.LabelSelector {
	return cluster.NewLabelSelector(cluster.Requirement{Key: key, Operator: cluster.In,
		Values: []string{fmt.Sprint(value)}})
}

func appPolicy(namespace string, i int) *cluster.NetworkPolicy {
	name := cluster.Name{Namespace: namespace, Name: fmt.Sprintf("np%03d", i)}
	return &cluster.NetworkPolicy{Name: name, UID: name.String(), Pods: labelled("app", i%apps),
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{
			Peers: []cluster.PolicyPeer{
				{Pods: &cluster.PodSelector{Namespace: namespace, Pods: labelled("app", (i+1)%apps)}},
				{Pods: &cluster.PodSelector{Namespaces: labelled("team", i%4)}},
				{Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
			},
			Ports: []cluster.PolicyPort{{Protocol: cluster.TCP, First: uint16(1 + i), Last: uint16(1 + i)}},
		}}}}
}

// policyChanges happen one after the other. Each is one transaction.
func policyChanges() []change {
	pod, moved := appPod("ns00", 9000, 3), appPod("ns00", 9000, 4)
	policy := appPolicy("ns00", 900)
	edited := *policy
	edited.Pods = labelled("app", 7)
	whole := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "ns00", Name: "deny"}, UID: "deny",
		Egress: cluster.PolicyRules{Isolates: true}}
	put := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.put(o...) } }
	drop := func(o ...cluster.Object) func(*feed) { return func(f *feed) { f.drop(o...) } }
	var all, back []cluster.Object
	for i := range policyNamespaces {
		for j := range podsEach {
			all = append(all, appPod(fmt.Sprintf("ns%02d", i), j, (j+1)%apps))
			back = append(back, appPod(fmt.Sprintf("ns%02d", i), j, j%apps))
		}
	}
	return []change{
		{"a node joins", put(&cluster.Node{Name: "joiner", UID: "joiner",
			Annotated: `{"default":["10.131.255.0/24","fd01:0:0:ffff::/64"]}`})},
		{"a pod comes", put(pod)},
		{"a pod's label changes", put(moved)},
		{"a pod goes", drop(moved)},
		{"a policy comes", put(policy)},
		{"a policy gets another subject", put(&edited)},
		{"a policy goes", drop(&edited)},
		{"a namespace's label changes", put(teamNamespace(0, 1))},
		{"500 pods: a policy isolates a namespace", put(whole)},
		{"500 pods: the policy goes", drop(whole)},
		{"10,000 pods get another label", put(all...)},
		{"10,000 pods get it back", put(back...)},
	}
}

// A change with policies costs what it changes, and is one transaction, however many pods it concerns.
func TestPoliciesAtScale(t *testing.T) {
	s := newPolicyScale(t)
	for _, c := range policyChanges() {
		got := s.measure(t, c)
		switch {
		case strings.HasPrefix(c.what, "a node") && got.Rows > maxPolicyJoinRows,
			strings.HasPrefix(c.what, "a pod") && (got.Rows > maxPodRows || got.request > maxPodBytes),
			strings.HasPrefix(c.what, "a policy") && got.Rows > maxPolicyRows:
			t.Errorf("%s: %d operations, %d rows, %d bytes", c.what, got.Operations, got.Rows, got.request)
		}
	}
	if read := s.restart(t); read > maxPolicyBytes*policyNamespaces*podsEach {
		t.Errorf("a client reads %d bytes at its start", read)
	}
}
