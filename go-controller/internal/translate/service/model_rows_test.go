package service_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
)

// dualStack is a cluster's configuration, with the services' addresses of the random clusters in its ranges.
func dualStack() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets = []config.ClusterSubnet{
		{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23},
		{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64},
	}
	c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	return c
}

// translated is the database that the master makes of a cluster. In a valid cluster the only problem is an address that
// two services name.
func (k *kube) translated(t *testing.T) (*offline.Cluster, *nb.Database) {
	t.Helper()
	var objects []cluster.Object
	decode := func(row kinds.Kind, obj runtime.Object) {
		o, problems := row.Decode(obj)
		if o == nil || len(problems) != 0 {
			t.Fatalf("decoding %v: problems %v", obj, problems)
		}
		objects = append(objects, o)
	}
	for _, n := range k.nodes {
		decode(kinds.Node(), n)
	}
	for _, p := range k.pods {
		decode(kinds.Pod(), p)
	}
	for _, s := range k.services {
		decode(kinds.Service(), s)
	}
	for _, e := range k.slices {
		decode(kinds.EndpointSlice(), e)
	}
	c := offline.New(dualStack(), objects)
	db, errs := c.Database()
	others := slices.DeleteFunc(slices.Clone(c.Problems),
		func(p cluster.Problem) bool { return p.Reason == "AddressInUse" })
	if len(errs)+len(others) != 0 {
		t.Fatalf("errors %v, problems %v", errs, others)
	}
	return c, db
}

// asRead is a database as OVN reads it.
type asRead struct {
	db       *nb.Database
	balancer map[string]*nbdb.LoadBalancer // by UUID
	group    map[string]*nbdb.LoadBalancerGroup
	sink     []netip.Prefix // that the cluster router discards
}

func readAsOVN(db *nb.Database) *asRead {
	r := &asRead{db: db, balancer: map[string]*nbdb.LoadBalancer{}, group: map[string]*nbdb.LoadBalancerGroup{}}
	for _, m := range db.Rows(nbdb.LoadBalancerTable) {
		lb := m.(*nbdb.LoadBalancer)
		r.balancer[lb.UUID] = lb
	}
	for _, m := range db.Rows(nbdb.LoadBalancerGroupTable) {
		g := m.(*nbdb.LoadBalancerGroup)
		r.group[g.UUID] = g
	}
	for _, m := range db.Rows(nbdb.LogicalRouterPolicyTable) {
		policy := m.(*nbdb.LogicalRouterPolicy)
		if family, prefix, ok := strings.Cut(policy.Match, ".dst == "); ok && (family == "ip4" || family == "ip6") &&
			policy.Action == nbdb.LogicalRouterPolicyActionDrop {
			r.sink = append(r.sink, netip.MustParsePrefix(prefix))
		}
	}
	return r
}

// carried lists the load balancers of a node's switch: its own and those of its groups. None may be there twice: OVN
// takes them as a set.
func (r *asRead) carried(node string) []*nbdb.LoadBalancer {
	uuids := map[string]bool{}
	for _, m := range r.db.Rows(nbdb.LogicalSwitchTable) {
		if ls := m.(*nbdb.LogicalSwitch); ls.Name == node {
			for _, u := range ls.LoadBalancer {
				uuids[u] = true
			}
			for _, g := range ls.LoadBalancerGroup {
				for _, u := range r.group[g].LoadBalancer {
					uuids[u] = true
				}
			}
		}
	}
	var out []*nbdb.LoadBalancer
	for _, u := range slices.Sorted(maps.Keys(uuids)) {
		out = append(out, r.balancer[u])
	}
	return out
}

// answers is the result, in the words of the model, for new connections from a pod on a node to every VIP of the node's
// switch. When two load balancers have a VIP, OVN takes either: that is no answer.
func (r *asRead) answers(node string) map[vip]string {
	out := map[vip]string{}
	for _, lb := range r.carried(node) {
		for key, backends := range lb.Vips {
			a := netip.MustParseAddrPort(key)
			v := newVIP(corev1.Protocol(strings.ToUpper(cmp.Or(value(lb.Protocol, ""), "tcp"))), a.Addr().String(),
				int32(a.Port()))
			text := refused
			if backends != "" {
				list := strings.Split(backends, ",")
				slices.Sort(list)
				text = strings.Join(list, ",") + keeps(lb)
			}
			if other, twice := out[v]; twice {
				text = fmt.Sprintf("either %s or %s", other, text)
			}
			out[v] = text
		}
	}
	return out
}

// keeps is how long a client keeps its backend, by OVN's timer or by its address.
func keeps(lb *nbdb.LoadBalancer) string {
	switch {
	case lb.Options["affinity_timeout"] != "":
		return " for " + lb.Options["affinity_timeout"] + "s"
	case slices.Equal(lb.SelectionFields, []string{nbdb.LoadBalancerSelectionFieldsIPSrc}):
		return " for good"
	}
	return ""
}

// elsewhere is the result for a packet to an address that is no VIP of the switch: it goes to the cluster router.
func (r *asRead) elsewhere(v vip) string {
	_, addr, _ := strings.Cut(string(v), " ")
	if slices.ContainsFunc(r.sink, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddrPort(addr).Addr()) }) {
		return dropped
	}
	return "routed like any other packet"
}

// differences compares what Kubernetes promises with what the rows do, for every node and every VIP that either knows.
func (k *kube) differences(r *asRead) []string {
	var out []string
	for _, n := range k.nodes {
		want, have := k.answers(n), r.answers(n.Name)
		for v := range want {
			if _, there := have[v]; !there {
				have[v] = r.elsewhere(v)
			}
		}
		for v, h := range have {
			if w, there := want[v]; !there {
				out = append(out, fmt.Sprintf("from %s to %s: the rows say %q, but it is no service's, or not for OVN", n.Name, v,
					h))
			} else if w != h {
				out = append(out, fmt.Sprintf("from %s to %s: Kubernetes says %q, the rows %q", n.Name, v, w, h))
			}
		}
	}
	slices.Sort(out)
	return out
}

// The rows of random services do what Kubernetes promises, seen from every node.
func TestRowsDoWhatKubernetesPromises(t *testing.T) {
	const rounds = 600
	seen := map[string]int{}
	for round := range rounds {
		k := dice{rand.New(rand.NewPCG(uint64(round), 17))}.cluster()
		_, db := k.translated(t)
		if d := k.differences(readAsOVN(db)); len(d) != 0 {
			t.Fatalf("round %d:\n%s\n%s", round, strings.Join(d, "\n"), k.text(t, d))
		}
		k.count(seen)
	}
	t.Logf("in %d clusters: %v", rounds, seen)
	for what, least := range map[string]int{refused: 1000, dropped: 1000, "differs by node": 1000, "sticky": 1000,
		"claimed twice": 100, "IPv6": 1000} {
		if seen[what] < least {
			t.Errorf("%s: %d times in %d clusters, want %d or more: the clusters prove too little", what, seen[what], rounds,
				least)
		}
	}
}

// count counts the cases that could have gone wrong.
func (k *kube) count(seen map[string]int) {
	by := map[vip]map[string]bool{}
	for _, n := range k.nodes {
		for v, a := range k.answers(n) {
			if by[v] == nil {
				by[v] = map[string]bool{}
			}
			by[v][a] = true
		}
	}
	for v, as := range by {
		for a := range as {
			answer, _, sticky := strings.Cut(a, " for ")
			if sticky {
				seen["sticky"]++
			}
			if answer == refused || answer == dropped {
				seen[answer]++
			}
		}
		if len(as) > 1 {
			seen["differs by node"]++
		}
		if strings.Contains(string(v), "[") {
			seen["IPv6"]++
		}
		seen["VIPs"]++
	}
	claimed := map[vip]int{}
	for _, s := range k.services {
		for _, c := range claims(s) {
			claimed[newVIP(c.port.Protocol, c.addr.String(), c.port.Port)]++
		}
	}
	for _, n := range claimed {
		if n > 1 {
			seen["claimed twice"]++
		}
	}
}

// text is the services that claim a VIP of one of the differences, with their slices, as YAML.
func (k *kube) text(t *testing.T, differences []string) string {
	t.Helper()
	var out []string
	write := func(o any) {
		b, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	for _, s := range k.services {
		if !slices.ContainsFunc(claims(s), func(c claim) bool {
			return slices.ContainsFunc(differences, func(d string) bool {
				return strings.Contains(d, " "+string(newVIP(c.port.Protocol, c.addr.String(), c.port.Port))+":")
			})
		}) {
			continue
		}
		write(s)
		for _, e := range k.slices {
			if e.Namespace == s.Namespace && e.Labels["kubernetes.io/service-name"] == s.Name {
				write(e)
			}
		}
	}
	return strings.Join(out, "---\n")
}
