package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A chassis is of one node. Nobody takes the one that another node's agent derives, nor another node's host name.
func TestChassis(t *testing.T) {
	s := NewState(config.DefaultCluster())
	step := func(what string, n *cluster.Node, want string, topics ...string) {
		t.Helper()
		e := cluster.Event{Ref: n.Ref(), New: n}
		if n.Created < 0 {
			e.New = nil
		}
		c, ok := s.Apply(e)
		if !ok {
			t.Fatalf("%s is no change", what)
		}
		var about []string
		for _, n := range c.About(NodeChassis) {
			about = append(about, n.Name)
		}
		x := ChassisOf(s)
		if got := x.Of("a") + " " + x.Of("b") + " " + x.Of("c"); got != want || !slices.Equal(about, topics) {
			t.Errorf("%s: %s, topics %v; want %s, %v", what, got, about, want, topics)
		}
	}
	node := func(name string, created int64, chassis string) *cluster.Node {
		return &cluster.Node{Name: name, Created: created, ChassisID: chassis}
	}
	step("unknown", node("b", 2, ""), "a b c", "b")
	step("published", node("b", 2, "x"), "a x c", "b")
	step("the same again", &cluster.Node{Name: "b", Created: 2, ChassisID: "x", Zone: "z"}, "a x c")
	step("a younger one claims it", node("c", 3, "x"), "a x c", "c")
	step("an older one claims it", node("a", 1, "x"), "x b c", "a", "b", "c")
	step("and leaves it", node("a", 1, "y"), "y x c", "a", "b", "c")
	step("the holder goes", node("b", -1, ""), "y b x", "c")
	derived := names.SystemID("c")
	step("its agent derives one", node("c", 3, derived), "y b "+derived, "c")
	step("an older one claims that", node("a", 1, derived), "a b "+derived, "a")
	step("and another's host name", node("a", 1, "c"), "a b "+derived)
	step("they go", node("a", -1, ""), "a b "+derived)
	step("all", node("c", -1, ""), "a b c")
	if x := ChassisOf(s); len(x.claims.of) != 0 || len(x.is) != 0 {
		t.Errorf("claims %v, %v of no node", x.claims.of, x.is)
	}
}

// Whatever happened, every chassis is what the whole state says, and the topics name the nodes that have another.
func TestChassisAfterAnyPath(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		s, was := NewState(config.DefaultCluster()), map[string]string{}
		for step := range 200 {
			ids := []string{"", "x", "y", "n1", names.SystemID("n2")}
			n := &cluster.Node{Name: fmt.Sprintf("n%d", r.IntN(5)), Created: int64(r.IntN(3)), ChassisID: ids[r.IntN(len(ids))],
				ByHand: r.IntN(5) == 0}
			e := cluster.Event{Ref: n.Ref(), New: n}
			if r.IntN(4) == 0 {
				e.New = nil
			}
			c, _ := s.Apply(e)
			again := NewState(s.Config)
			for _, n := range s.Nodes {
				again.Apply(cluster.Event{Ref: n.Ref(), New: n})
			}
			for name := range s.Nodes {
				got := ChassisOf(s).Of(name)
				if want := ChassisOf(again).Of(name); got != want {
					t.Fatalf("seed %d step %d: the chassis of %s is %s, want %s", seed, step, name, got, want)
				}
				if was[name] != got && !slices.Contains(c.About(NodeChassis), cluster.Name{Name: name}) {
					t.Fatalf("seed %d step %d: the chassis of %s was %q and is %s, topics %v", seed, step, name, was[name], got,
						c.Topics)
				}
			}
			was = map[string]string{}
			for name := range s.Nodes {
				was[name] = ChassisOf(s).Of(name)
			}
		}
	}
}
