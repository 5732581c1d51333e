package policy_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// traced tells whether the first packet of a connection between pods arrives according to ovn-trace, and what that
// prints.
func traced(t *testing.T, sb string, c *offline.Cluster, routers map[string]string, try connection) (bool, string) {
	t.Helper()
	mac := func(e end) string {
		pod := cluster.Name{Namespace: e.Pod.Namespace, Name: e.Pod.Name}
		return c.State.PodNetworks[cluster.PodPort{Pod: pod}].MAC.String()
	}
	dst := mac(try.To)
	if try.From.Node != try.To.Node {
		dst = routers["rtos-"+try.From.Node]
	}
	ip := "ip4"
	if try.To.Addr.Is6() {
		ip = "ip6"
	}
	flow := fmt.Sprintf("inport == %q && eth.src == %s && eth.dst == %s && %s.src == %s && %[4]s.dst == %[6]s && "+
		"ip.ttl == 64 && ", policytest.LogicalPort(try.From), mac(try.From), dst, ip, try.From.Addr, try.To.Addr)
	if try.Protocol == icmp {
		flow += map[string]string{"ip4": "icmp4.type == 8", "ip6": "icmp6.type == 128"}[ip]
	} else {
		flow += fmt.Sprintf("%s.src == 40000 && %[1]s.dst == %[2]d", strings.ToLower(string(try.Protocol)), try.Port)
	}
	args := []string{"--db=" + sb}
	for range 4 { // one for each time that the packet enters connection tracking
		args = append(args, "--ct=new")
	}
	trace := testkit.Run(t, "ovn-trace", append(args, try.From.Node, flow)...)
	outputs := regexp.MustCompile(`output to "([^"]*)"`).FindAllStringSubmatch(trace, -1)
	return len(outputs) > 0 && outputs[len(outputs)-1][1] == policytest.LogicalPort(try.To), trace
}

// The flows that northd makes of the rows do with pods' packets what Kubernetes promises. There are tenants, and
// ClusterNetworkPolicies among the policies, if this machine's OVN has tiers.
func TestOVNTraceAgrees(t *testing.T) {
	if testkit.Isolated(t) {
		traceAgrees(t, 11)
	}
}

// The same of a cluster that is another in each run.
func TestOVNTraceAgreesAboutANewCluster(t *testing.T) {
	if testkit.Isolated(t) {
		fresh := rand.Uint64()
		t.Logf("a new seed: %d", fresh)
		traceAgrees(t, fresh)
	}
}

// traceAgrees asks about connections between pods of a random cluster.
func traceAgrees(t *testing.T, seed uint64) {
	t.Helper()
	const most = 100
	d := policytest.NewDice(seed, 23)
	sb := testkit.StartOVN(t)
	k := worthTracing(d, exec.Command("ovn-nbctl", "--columns=tier", "list", "ACL").Run() == nil, most/2)
	c, err := k.translated()
	if err != nil {
		t.Fatal(err)
	}
	db, _ := c.Database()
	routers := map[string]string{}
	for _, m := range db.Rows(nbdb.LogicalRouterPortTable) {
		p := m.(*nbdb.LogicalRouterPort)
		routers[p.Name] = p.MAC
	}
	var script strings.Builder
	if err := show.Write(&script, show.NBCtl, c.Schema, db); err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "sh", "-ec", script.String())
	testkit.Run(t, "ovn-nbctl", "--timeout=60", "--wait=sb", "sync")
	t.Logf("%d NetworkPolicies, %d ClusterNetworkPolicies, tenants: %v", len(k.Policies), len(k.ClusterPolicies),
		k.Multitenant)
	seen := map[bool]int{}
	for seen[true] < most/2 || seen[false] < most/2 {
		try := d.Connection(k.Cluster)
		want := k.allowed(try)
		if !betweenPods(try) || seen[want] == most/2 {
			continue
		}
		if arrives, trace := traced(t, sb, c, routers, try); arrives != want {
			t.Fatalf("%s: Kubernetes says allowed %v, ovn-trace %v\n%s\n%s", try, want, arrives, trace, k.Text())
		}
		seen[want]++
	}
}

// worthTracing is a random cluster with policies that allow, and deny, at least so many of a sample of connections.
// Without tiers it has neither tenants nor ClusterNetworkPolicies.
func worthTracing(d policytest.Dice, tiers bool, least int) *kube {
	for {
		k := random(d)
		if len(k.Policies) < 3 || len(k.ClusterPolicies) < 3 || len(k.Families) < 2 || !k.Multitenant {
			continue
		}
		if !tiers {
			k.ClusterPolicies, k.Multitenant = nil, false
		}
		seen := map[bool]int{}
		for range 20 * least {
			if try := d.Connection(k.Cluster); betweenPods(try) {
				seen[k.allowed(try)]++
			}
		}
		if seen[true] >= least && seen[false] >= least {
			return k
		}
	}
}

// betweenPods is true for a connection from a pod to another.
func betweenPods(c connection) bool {
	return c.From.Pod != nil && c.To.Pod != nil && c.From.Pod != c.To.Pod
}
