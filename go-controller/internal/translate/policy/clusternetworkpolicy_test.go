package policy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// everybody is all pods of all namespaces, with any port.
func everybody() cluster.PolicyRule {
	return cluster.PolicyRule{Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{}}}, AnyPort: true}
}

// ruled is a ClusterNetworkPolicy for all pods.
func ruled(name string, created int64, ingress ...cluster.TieredRule) *cluster.TieredPolicy {
	return &cluster.TieredPolicy{Name: name, UID: "u", Created: created, Tier: cluster.AdminTier, Priority: 7,
		Ingress: ingress}
}

// twoPods is a node with the pods x/a and x/b, and other objects.
func twoPods(others ...cluster.Object) []cluster.Object {
	out := []cluster.Object{&cluster.Node{Name: "n", UID: "u", Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		&cluster.Namespace{Name: "x", UID: "u"}}
	for _, name := range []string{"a", "b"} {
		out = append(out, &cluster.Pod{Name: cluster.Name{Namespace: "x", Name: name}, UID: "u", Node: "n"})
	}
	return append(out, others...)
}

func translated(objects []cluster.Object) *offline.Cluster {
	return offline.NewOf(config.DefaultCluster(), theSchema(), all.Translators(theSchema()), objects)
}

// ask asks whether x/a may send a packet to x/b.
func ask(t *testing.T, c *offline.Cluster, p verdict.Packet) bool {
	t.Helper()
	db, errs := c.Database()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	addr := func(pod string) netip.Addr {
		return c.State.PodNetworks[cluster.PodPort{Pod: cluster.Name{Namespace: "x", Name: pod}}].IPs[0].Addr()
	}
	p.Src, p.Dst, p.Inport, p.Outport = addr("a"), addr("b"), names.Own.LogicalPort("x", "a", ""),
		names.Own.LogicalPort("x", "b", "")
	v, err := verdict.New(db).Connection(p, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Allowed
}

// A Deny of a port also denies fragments of the protocol, whose ports OVN does not see; nothing else does.
func TestDeniedPortsAndFragments(t *testing.T) {
	port := everybody()
	port.AnyPort, port.Ports = false, []cluster.PolicyPort{{Protocol: cluster.UDP, First: 53, Last: 53}}
	for action, want := range map[cluster.PolicyAction][3]bool{ // port 53, port 54, a fragment
		cluster.Deny: {false, true, false}, cluster.Accept: {true, true, true}, cluster.Pass: {true, true, true}} {
		c := translated(twoPods(ruled("p", 1, cluster.TieredRule{Action: action, PolicyRule: port})))
		got := [3]bool{ask(t, c, verdict.Packet{Protocol: verdict.UDP, DstPort: 53}),
			ask(t, c, verdict.Packet{Protocol: verdict.UDP, DstPort: 54}),
			ask(t, c, verdict.Packet{Protocol: verdict.UDP, DstPort: 53, Fragment: true})}
		if got != want {
			t.Errorf("%s: allowed %v, want %v", action, got, want)
		}
		if !ask(t, c, verdict.Packet{Protocol: verdict.TCP, DstPort: 53, Fragment: true}) {
			t.Errorf("%s of a port of UDP denies fragments of TCP", action)
		}
	}
}

// Of policies with the same priority the oldest is asked first, and both authors hear of it.
func TestSamePriority(t *testing.T) {
	accept := cluster.TieredRule{Action: cluster.Accept, PolicyRule: everybody()}
	deny := cluster.TieredRule{Action: cluster.Deny, PolicyRule: everybody()}
	for _, created := range [][2]int64{{1, 2}, {2, 1}} {
		c := translated(twoPods(ruled("accepts", created[0], accept), ruled("denies", created[1], deny)))
		if allowed := ask(t, c, verdict.Packet{Protocol: verdict.TCP, DstPort: 80}); allowed != (created[0] == 1) {
			t.Errorf("created at %v: allowed %v", created, allowed)
		}
		var clashes []string
		for _, p := range c.Problems {
			clashes = append(clashes, p.Reason+" "+p.Ref.Name.Name)
		}
		slices.Sort(clashes)
		if fmt.Sprint(clashes) != "[PriorityClash accepts PriorityClash denies]" {
			t.Errorf("problems %v", c.Problems)
		}
	}
	// The last rules share the last place. The priority of the next policy is not reached.
	many := ruled("many", 1, slices.Repeat([]cluster.TieredRule{accept}, 25)...)
	c := translated(twoPods(many, ruled("more", 2, deny)))
	db, _ := c.Database()
	for _, m := range db.Rows(nbdb.ACLTable) {
		a := m.(*nbdb.ACL)
		if a.Tier == names.TierAdmin && a.Priority < 30000-25*7-24 && a.Priority != names.ACLUnblock {
			t.Errorf("priority %d is that of another policy: %s", a.Priority, a.Match)
		}
	}
	if len(c.Problems) != 2 || !strings.Contains(c.Problems[0].Message, "is left to OVN") {
		t.Errorf("problems %v", c.Problems)
	}
}

// The last of 25 rules decides at both ends of the priorities, in both tiers, and the first of the next priority comes
// after it. No rule has a priority of the network's own ACLs.
func TestEdgesOfPriorities(t *testing.T) {
	other := everybody()
	other.AnyPort, other.Ports = false, []cluster.PolicyPort{{Protocol: cluster.TCP, First: 9, Last: 9}}
	rules := slices.Repeat([]cluster.TieredRule{{Action: cluster.Accept, PolicyRule: other}}, 24)
	rules = append(rules, cluster.TieredRule{Action: cluster.Deny, PolicyRule: everybody()})
	for _, tier := range []cluster.PolicyTier{cluster.AdminTier, cluster.BaselineTier} {
		for _, priority := range []int{0, 999, 1000} {
			p := ruled("many", 1, rules...)
			p.Tier, p.Priority = tier, priority
			objects := []cluster.Object{p}
			if priority == 999 {
				next := ruled("next", 0, cluster.TieredRule{Action: cluster.Accept, PolicyRule: everybody()})
				next.Tier, next.Priority = tier, 1000
				objects = append(objects, next)
			}
			c := translated(twoPods(objects...))
			if ask(t, c, verdict.Packet{Protocol: verdict.TCP, DstPort: 80}) {
				t.Errorf("tier %s, priority %d: the last rule does not deny", tier, priority)
			}
			if !ask(t, c, verdict.Packet{Protocol: verdict.TCP, DstPort: 9}) {
				t.Errorf("tier %s, priority %d: the first rule does not accept", tier, priority)
			}
			db, _ := c.Database()
			for _, m := range db.Rows(nbdb.ACLTable) {
				a := m.(*nbdb.ACL)
				if a.ExternalIDs[names.OwnerTypeKey] == string(names.KindClusterPolicy) && a.Priority != names.ACLUnblock &&
					(a.Priority < 30000-25*1000-24 || a.Priority > 30000) {
					t.Errorf("tier %s, priority %d: an ACL has priority %d", tier, priority, a.Priority)
				}
			}
			if len(c.Problems) > 0 {
				t.Errorf("problems %v", c.Problems)
			}
		}
	}
}

// A database without tiers gets no row of a ClusterNetworkPolicy, NetworkPolicies stay as they are, and an Event says
// which OVN it takes.
func TestWithoutTiers(t *testing.T) {
	np := &cluster.NetworkPolicy{Name: cluster.Name{Namespace: "x", Name: "np"}, UID: "u",
		Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPeer: true, AnyPort: true}}}}
	c := core.New(config.DefaultCluster(), theSchema(), all.Translators(theSchema()))
	c.State.WithoutTiers = true
	var events []cluster.Event
	for _, o := range twoPods(np, ruled("p", 1, cluster.TieredRule{Action: cluster.Deny, PolicyRule: everybody()})) {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	c.Step(events)
	c.Start()
	batch := c.Plan(nb.NewDatabase(theSchema()), c.Owners(), nil)
	allows := 0 // ACLs of the NetworkPolicy
	for _, p := range batch.Plans {
		for _, r := range p.Rows {
			acl, ok := r.Model.(*nbdb.ACL)
			if ok && p.Owner.Kind == names.KindPolicy {
				allows++
			}
			if ok && (acl.Tier != 0 || p.Owner.Kind == names.KindClusterPolicy) {
				t.Errorf("%s has an ACL of tier %d: %s", p.Owner, acl.Tier, acl.Match)
			}
		}
	}
	if allows == 0 {
		t.Error("the NetworkPolicy has no ACL")
	}
	news := c.News(batch)
	if len(news) != 1 || news[0].Reason != "TiersMissing" || !strings.Contains(news[0].Message, "23.06") {
		t.Errorf("reports %v", news)
	}
}
