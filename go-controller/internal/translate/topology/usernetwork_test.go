package topology_test

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
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	translators "github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/translate/topology"
)

// The condition of a network that somebody has deleted names the pods that keep it.
func TestPodsThatKeepADeletedNetwork(t *testing.T) {
	const asked = "pods of the namespace can ask for an interface in the network"
	const kept = "somebody has deleted the network: it stays while pods have interfaces in it: "
	name := cluster.Name{Namespace: "shop", Name: "blue"}
	n := names.Defined(name.Namespace, name.Name)
	for _, c := range []struct {
		deleted bool
		pods    int
		want    string
	}{
		{false, 2, asked}, {true, 0, asked}, {true, 2, kept + "shop/p0, shop/p1"},
		{true, 5, kept + "shop/p0, shop/p1, shop/p2, and 2 more"},
	} {
		objects := []cluster.Object{&cluster.Node{Name: "n", UID: "n"}, &cluster.Namespace{Name: "shop", UID: "s"},
			&cluster.UserNetwork{Name: name, UID: "u", Deleting: c.deleted, Protected: true,
				Network: &cluster.Network{Name: n, Topology: cluster.Layer2, UserDefined: true}}}
		for i := range c.pods {
			p := cluster.Name{Namespace: "shop", Name: fmt.Sprint("p", i)}
			objects = append(objects, &cluster.Pod{Name: p, UID: p.Name, Node: "n",
				Attachments: []cluster.Attachment{{Network: n, Interface: "net1"}, {Network: n, Interface: "net2"}}})
		}
		s := offline.New(config.DefaultCluster(), objects).State
		rows, err := topology.Cluster{Schema: nb.NewSchema()}.Rows(s,
			nb.Owner{Kind: names.KindCluster, Name: n.Owner(names.UserOwner)})
		if err != nil || rows.Judged == nil || !rows.Judged.Conditions[0].True ||
			rows.Judged.Conditions[0].Message != c.want {
			t.Errorf("deleted %v, %d pods: %+v, %v; want %q", c.deleted, c.pods, rows.Judged, err, c.want)
		}
	}
}

// Another condition names the nodes that have no subnet of the network, while pods of it are on them.
func TestNodesWithoutSubnet(t *testing.T) {
	name := cluster.Name{Namespace: "shop", Name: "blue"}
	n := names.Defined(name.Namespace, name.Name)
	for _, c := range []struct {
		topology cluster.Topology
		invalid  string
		nodes    int // with a pod of the network
		want     string
	}{
		{cluster.Layer3, "", 0, "true NetworkAllocationSucceeded: every node that pods of the network are on has what it " +
			"needs in it"},
		{cluster.Layer3, "", 2, "true NetworkAllocationSucceeded: every node that pods of the network are on has what it " +
			"needs in it"},
		{cluster.Layer3, "", 4, "false InternalError: no subnet of the network is free for these nodes, and its pods there " +
			"wait: n2, n3"},
		{cluster.Layer2, "", 4, "true NetworkAllocationSucceeded: every node that pods of the network are on has what it " +
			"needs in it"},
		{cluster.Layer3, "spec.x", 4, "false SyncError: the network has nothing on nodes: see NetworkCreated"},
	} {
		u := &cluster.UserNetwork{Name: name, UID: "u", Protected: true, Invalid: c.invalid}
		if c.invalid == "" {
			u.Network = &cluster.Network{Name: n, Topology: c.topology, UserDefined: true,
				Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/24"), NodeLength: 25}}}
		}
		objects := []cluster.Object{&cluster.Namespace{Name: "shop", UID: "s"}, u, &cluster.Node{Name: "idle", UID: "idle"}}
		for i := range c.nodes {
			node := fmt.Sprint("n", i)
			objects = append(objects, &cluster.Node{Name: node, UID: node, Created: int64(i)},
				&cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: node}, UID: node, Node: node,
					Attachments: []cluster.Attachment{{Network: n, Interface: "net1"}}})
		}
		rows, err := topology.Cluster{Schema: nb.NewSchema()}.Rows(offline.New(config.DefaultCluster(), objects).State,
			nb.Owner{Kind: names.KindCluster, Name: n.Owner(names.UserOwner)})
		if err != nil || rows.Judged == nil {
			t.Fatalf("%+v: %+v, %v", c, rows.Judged, err)
		}
		got := rows.Judged.Conditions[1]
		if text := fmt.Sprintf("%v %s: %s", got.True, got.Reason, got.Message); text != c.want ||
			got.Type != "NetworkAllocationSucceeded" {
			t.Errorf("%s %s %d nodes: %s, want %s", c.topology, c.invalid, c.nodes, text, c.want)
		}
	}
}

// The condition of a ClusterUserDefinedNetwork names the namespaces whose pods may be in it.
func TestNamespacesOfASharedNetwork(t *testing.T) {
	team := cluster.NewLabelSelector(cluster.Requirement{Key: "team", Operator: cluster.Exists})
	for _, primary := range []bool{false, true} {
		n := &cluster.Network{Name: names.Defined("", "blue"), Topology: cluster.Layer2, UserDefined: true, Primary: primary,
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/24")}}}
		if primary {
			if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
				t.Fatal(err)
			}
		}
		u := &cluster.UserNetwork{Name: cluster.Name{Name: "blue"}, UID: "u", Selects: &team, Network: n}
		message := func(labelled int) string {
			objects := []cluster.Object{u, &cluster.Namespace{Name: "other", UID: "o"}}
			for i := range 12 {
				labels := map[string]string{}
				if i < labelled {
					labels["team"] = ""
				}
				if i > 0 {
					labels[names.PrimaryLabel] = ""
				}
				ns := fmt.Sprintf("ns%02d", i)
				objects = append(objects, &cluster.Namespace{Name: ns, UID: ns, Labels: cluster.NewLabels(labels)})
			}
			s := offline.New(config.DefaultCluster(), objects).State
			rows, err := topology.Cluster{Schema: nb.NewSchema()}.Rows(s,
				nb.Owner{Kind: names.KindCluster, Name: n.Name.Owner(names.UserOwner)})
			if err != nil || rows.Judged == nil || !rows.Judged.Conditions[0].True {
				t.Fatalf("%+v, %v", rows.Judged, err)
			}
			_, list, _ := strings.Cut(rows.Judged.Conditions[0].Message, "in the network: ")
			return list
		}
		want := map[int]string{0: "none", 2: "ns00, ns01",
			12: "ns00, ns01, ns02, ns03, ns04, ns05, ns06, ns07, ns08, ns09, and 2 more"}
		if primary {
			want = map[int]string{0: "none", 2: "ns01",
				12: "ns01, ns02, ns03, ns04, ns05, ns06, ns07, ns08, ns09, ns10, and 1 more"}
		}
		for labelled, list := range want {
			if got := message(labelled); got != list {
				t.Errorf("primary %v, %d namespaces with the label: %q, want %q", primary, labelled, got, list)
			}
		}
	}
}

// A namespace keeps its primary network when another is made. The newer one's condition and Event tell, and end with
// the older one.
func TestOlderPrimaryNetwork(t *testing.T) {
	network := func(namespace, name string, created int64) *cluster.UserNetwork {
		n := &cluster.Network{Name: names.Defined(namespace, name), Topology: cluster.Layer2, UserDefined: true,
			Primary: true, Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.99.0.0/24")}}}
		if err := n.SetJoin([]netip.Prefix{netip.MustParsePrefix("100.66.0.0/15")}); err != nil {
			t.Fatal(err)
		}
		at := cluster.Name{Namespace: namespace, Name: name}
		return &cluster.UserNetwork{Name: at, UID: name, Created: created, Network: n}
	}
	all, schema := cluster.NewLabelSelector(), nb.NewSchema()
	old, shared, own := network("red", "old", 1), network("", "shared", 2), network("red", "own", 3)
	shared.Selects = &all
	definition := network("red", "defined", 4)
	defined := &cluster.NetworkDefinition{Name: definition.Name, UID: "defined", Created: 4, Network: definition.Network}
	defined.Network.UserDefined = false
	c := core.New(config.DefaultCluster(), schema, translators.Translators(schema))
	labels := cluster.NewLabels(map[string]string{names.PrimaryLabel: ""})
	var events []cluster.Event
	for _, o := range []cluster.Object{&cluster.Namespace{Name: "red", Labels: labels},
		&cluster.Namespace{Name: "blue", Labels: labels}, old, shared, own, defined} {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	c.Step(events)
	c.Start()
	const older = "these namespaces have an older primary network, in which their pods stay: red (%s); delete one of " +
		"the two networks"
	check := func(n *cluster.Network, owner, oldest, condition string) {
		t.Helper()
		rows, err := c.Rows(nb.Owner{Kind: names.KindCluster, Name: n.Name.Owner(owner)})
		if err != nil {
			t.Fatal(err)
		}
		var reports []string
		for _, r := range rows.Reports {
			reports = append(reports, r.Reason+": "+r.Message)
		}
		want := "OlderPrimaryNetwork: " + fmt.Sprintf(older, oldest)
		if (oldest != "") != (strings.Join(reports, "") == want) {
			t.Errorf("%s has the reports %q, want %q", n.Name, reports, want)
		}
		if rows.Judged != nil {
			got := fmt.Sprint(rows.Judged.Conditions[0].True, ": ", rows.Judged.Conditions[0].Message)
			if want := strings.ReplaceAll(condition, "OLDER", fmt.Sprintf(older, oldest)); got != want {
				t.Errorf("%s has the condition %s, want %s", n.Name, got, want)
			}
		}
	}
	const alone = "true: the pods of the namespace are in the network if it has the label " + names.PrimaryLabel
	const among = "true: the pods of the selected namespaces that have the label " + names.PrimaryLabel +
		" are in the network: "
	check(old.Network, names.UserOwner, "", alone)
	check(shared.Network, names.UserOwner, "red/old", among+"blue; OLDER")
	check(own.Network, names.UserOwner, "red/old", "false: OLDER")
	check(defined.Network, names.ClusterOwner, "red/old", "")
	res := c.Step([]cluster.Event{{Ref: old.Ref()}})
	for _, owner := range []string{shared.Network.Name.Owner(names.UserOwner), own.Network.Name.Owner(names.UserOwner),
		defined.Network.Name.Owner(names.ClusterOwner)} {
		if !slices.Contains(res.Dirty, nb.Owner{Kind: names.KindCluster, Name: owner}) {
			t.Errorf("when the oldest network goes, %s is not looked at again", owner)
		}
	}
	check(shared.Network, names.UserOwner, "", among+"blue, red")
	check(own.Network, names.UserOwner, "shared", "false: OLDER")
	check(defined.Network, names.ClusterOwner, "shared", "")
	hides := &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "red", Name: "shared"}, UID: "hides", Foreign: true}
	res = c.Step([]cluster.Event{{Ref: hides.Ref(), New: hides}})
	owner := nb.Owner{Kind: names.KindCluster, Name: shared.Network.Name.Owner(names.UserOwner)}
	if !slices.Contains(res.Dirty, owner) {
		t.Error("when a definition of its name comes, the shared network is not looked at again")
	}
	check(shared.Network, names.UserOwner, "", among+"blue")
}
