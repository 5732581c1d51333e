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
	translators "github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// bridges is a core with a ClusterUserDefinedNetwork and a NetworkAttachmentDefinition of topology localnet, and a
// network that is joined to nothing outside.
type bridges struct {
	*core.Core
	user, defined, inside nb.Owner
}

func newBridges() bridges {
	localnet := func(n names.Network) *cluster.Network {
		return &cluster.Network{Name: n, Topology: cluster.Localnet, Physical: cluster.Physical{Name: "lan"},
			Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("192.0.2.0/24")}}}
	}
	shared, own, inside := names.Defined("", "san"), names.Defined("shop", "disk"), names.Defined("shop", "blue")
	owner := func(n names.Network, name string) nb.Owner {
		return nb.Owner{Kind: names.KindCluster, Name: n.Owner(name)}
	}
	settings, schema, all := config.DefaultCluster(), nb.NewSchema(), cluster.NewLabelSelector()
	settings.PhysicalNetworks = []config.PhysicalNetwork{{Name: "lan"}}
	b := bridges{core.New(settings, schema, translators.Translators(schema)), owner(shared, names.UserOwner),
		owner(own, names.ClusterOwner), owner(inside, names.UserOwner)}
	u := &cluster.UserNetwork{Name: cluster.Name{Name: "san"}, UID: "san", Selects: &all, Protected: true,
		Network: localnet(shared)}
	u.Network.UserDefined = true
	other := &cluster.UserNetwork{Name: cluster.Name{Namespace: "shop", Name: "blue"}, UID: "blue", Protected: true,
		Network: &cluster.Network{Name: inside, Topology: cluster.Layer2, UserDefined: true}}
	d := &cluster.NetworkDefinition{Name: cluster.Name{Namespace: "shop", Name: "disk"}, UID: "disk",
		Network: localnet(own)}
	var events []cluster.Event
	for _, o := range []cluster.Object{&cluster.Namespace{Name: "shop"}, u, other, d} {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	b.Step(events)
	b.Start()
	return b
}

// set gives a node bridges, or removes it, and returns which of the owners are looked at again.
func (b bridges) set(name string, bridges []string, is bool) (again []string) {
	e := cluster.Event{Ref: (&cluster.Node{Name: name}).Ref()}
	if is {
		e.New = &cluster.Node{Name: name, UID: name, Physical: bridges}
	}
	dirty := b.Step([]cluster.Event{e}).Dirty
	for what, o := range map[string]nb.Owner{"user": b.user, "defined": b.defined, "inside": b.inside} {
		if slices.Contains(dirty, o) {
			again = append(again, what)
		}
	}
	slices.Sort(again)
	return again
}

// says is what the network's condition and the definition's report say.
func (b bridges) says(t *testing.T) (condition, report string) {
	t.Helper()
	for _, o := range []nb.Owner{b.user, b.defined, b.inside} {
		rows, err := b.Rows(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows.Reports {
			report += r.Reason + ": " + r.Message
		}
		if rows.Judged == nil {
			continue
		}
		for _, c := range rows.Judged.Conditions[2:] {
			condition += fmt.Sprint(c.Type, " ", c.True, " ", c.Reason, ": ", c.Message)
		}
	}
	return condition, report
}

// The condition of a network of topology Localnet names the nodes without a bridge to the network outside, and so does
// an Event of a NetworkAttachmentDefinition.
func TestNodesWithoutBridge(t *testing.T) {
	b := newBridges()
	check := func(what string, nodes string) {
		t.Helper()
		message := "pods of the network don't start on these nodes, which have no bridge for physical network lan: " +
			nodes + "; see --bridge-mappings of the node agent"
		condition, report := "PhysicalNetworkMapped false NodesWithoutBridge: "+message, "NodesWithoutBridge: "+message
		if nodes == "" {
			report, condition = "", "PhysicalNetworkMapped true NodesHaveBridges: every node whose agent reports its bridges "+
				"has one for physical network lan"
		}
		if nodes == "unknown" {
			report, condition = "", "PhysicalNetworkMapped false NoNodeReports: no node's agent has reported its bridges yet"
		}
		if c, r := b.says(t); c != condition || r != report {
			t.Errorf("%s: condition %q and report %q, want nodes %q", what, c, r, nodes)
		}
	}
	for _, c := range []struct {
		what    string
		node    string
		bridges []string
		gone    bool
		again   string
		nodes   string
	}{
		{"a node comes that has said nothing", "n1", nil, false, "", "unknown"},
		{"it has no bridge", "n1", []string{}, false, "defined user", "n1"},
		{"it has a bridge to another network", "n1", []string{"storage"}, false, "", "n1"},
		{"another has none", "n0", []string{}, false, "defined user", "n0, n1"},
		{"the first has one", "n1", []string{"lan", "storage"}, false, "defined user", "n0"},
		{"it loses the other", "n1", []string{"lan"}, false, "", "n0"},
		{"the second goes", "n0", nil, true, "defined user", ""},
		{"the first loses its bridge", "n1", []string{}, false, "defined user", "n1"},
		{"it is of an earlier version", "n1", nil, false, "defined user", "unknown"},
	} {
		again := b.set(c.node, c.bridges, !c.gone)
		if got := strings.Join(again, " "); got != c.again {
			t.Errorf("%s: looked at again %q, want %q", c.what, got, c.again)
		}
		check(c.what, c.nodes)
	}
	for i := range 12 {
		b.set(fmt.Sprintf("w%02d", i), []string{}, true)
	}
	check("many", "w00, w01, w02, w03, w04, w05, w06, w07, w08, w09 and more")
}

// A network that is not served is joined to nothing outside.
func TestNotJoined(t *testing.T) {
	b := newBridges()
	b.set("n1", []string{"lan"}, true)
	refused := &cluster.UserNetwork{Name: cluster.Name{Name: "san"}, UID: "san", Protected: true,
		Network: &cluster.Network{Name: names.Defined("", "san"), Topology: cluster.Localnet, UserDefined: true,
			Physical: cluster.Physical{Name: "elsewhere"}}}
	b.Step([]cluster.Event{{Ref: refused.Ref(), New: refused}})
	condition, _ := b.says(t)
	const want = "PhysicalNetworkMapped false SyncError: the network is not joined to anything: see NetworkCreated"
	if condition != want {
		t.Errorf("condition %q, want %q", condition, want)
	}
}
