package offline_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/show"
)

func objects(nodes, pods int) []cluster.Object {
	out := []cluster.Object{&cluster.Namespace{Name: "default"}}
	for i := range nodes {
		out = append(out, &cluster.Node{Name: fmt.Sprintf("n%d", i), UID: fmt.Sprint(i)})
	}
	for i := range pods {
		out = append(out, &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: fmt.Sprintf("p%d", i)},
			Node: fmt.Sprintf("n%d", i%nodes)})
	}
	out = append(out, &cluster.Service{Name: cluster.Name{Namespace: "default", Name: "s"},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		Ports:      []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}})
	return out
}

// The same objects give the same bytes in every format, whatever their order.
func TestOrderDoesNotMatter(t *testing.T) {
	list := objects(5, 40)
	r := rand.New(rand.NewPCG(1, 2))
	want := map[show.Format]string{}
	for round := range 10 {
		c := offline.New(config.DefaultCluster(), list)
		db, errs := c.Database()
		if len(errs)+len(c.Problems) != 0 {
			t.Fatalf("errors %v, problems %v", errs, c.Problems)
		}
		if n := len(db.Rows(nbdb.LogicalSwitchPortTable)); n != 1+5*2+40 {
			t.Fatalf("%d ports, want 51", n)
		}
		for _, f := range show.Formats() {
			var b strings.Builder
			if err := show.Write(&b, f, c.Schema, db); err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				want[f] = b.String()
			} else if b.String() != want[f] {
				t.Errorf("round %d: %s differs from round 0", round, f)
			}
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
}

// Exhaustion is reported, and what there is room for is translated.
func TestExhaustion(t *testing.T) {
	c := config.DefaultCluster()
	// two nodes with three pods each
	c.Subnets = []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/28"), NodeLength: 29}}
	o := offline.New(c, objects(3, 30))
	db, errs := o.Database()
	if len(errs) != 0 {
		t.Errorf("errors %v", errs)
	}
	if n := len(db.Rows(nbdb.LogicalSwitchTable)); n != 1+2 {
		t.Errorf("%d switches, want join and two nodes", n)
	}
	if n := len(db.Rows(nbdb.LogicalSwitchPortTable)); n != 1+2*2+2*3 {
		t.Errorf("%d ports, want 11", n)
	}
	if n := len(o.Problems); n != 1+2*7 {
		t.Errorf("%d problems, want one of a node and fourteen of pods: %v", n, o.Problems)
	}
}

func TestPodWithoutItsNode(t *testing.T) {
	lost := &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "lost"}, Node: "gone"}
	host := &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "host"}, Node: "gone", HostNetwork: true}
	c := offline.New(config.DefaultCluster(), append(objects(1, 1), lost, host))
	if len(c.Problems) != 1 ||
		c.Problems[0].Error() != "Pod default/lost: NodeUnknown: spec.nodeName: Node gone is not among the objects: pod "+
			"default/lost gets no port" {
		t.Errorf("problems %v, want one of default/lost", c.Problems)
	}
}
