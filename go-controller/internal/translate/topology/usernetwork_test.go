package topology_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
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
		if err != nil || rows.Judged == nil || rows.Judged.Condition.Message != c.want || !rows.Judged.Condition.True {
			t.Errorf("deleted %v, %d pods: %+v, %v; want %q", c.deleted, c.pods, rows.Judged, err, c.want)
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
			if err != nil || rows.Judged == nil || !rows.Judged.Condition.True {
				t.Fatalf("%+v, %v", rows.Judged, err)
			}
			_, list, _ := strings.Cut(rows.Judged.Condition.Message, "in the network: ")
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
