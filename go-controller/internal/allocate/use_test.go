package allocate

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// What is in use is counted by node and family, by cluster subnet, and on the join switch.
func TestUse(t *testing.T) {
	w := newWorld(t, "10.1.0.0/16/29,fd01::/48/64")
	w.put(node("n1", 1), node("n2", 2))
	w.put(pod("a", "n1"), pod("b", "n1"))
	check := func(when, want string) {
		t.Helper()
		u := w.ledger.Use()
		slices.SortFunc(u.Nodes, func(a, b NodeUse) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), a.Subnet.Addr().Compare(b.Subnet.Addr()))
		})
		var have string
		for _, n := range u.Nodes {
			if n.Subnet.Addr().Is4() {
				have += fmt.Sprintf("%s %v/%v; ", n.Node, n.Used, n.Available)
			} else if n.Available < 1e9 {
				t.Errorf("%s: a /64 has room for %v more pods, want many", n.Node, n.Available)
			}
		}
		for _, r := range u.Ranges {
			have += fmt.Sprintf("%s %v/%v; ", r.Subnet, r.Used, r.Available)
		}
		have += fmt.Sprintf("join %v/%v", u.Join.Used, u.Join.Available)
		if have != want {
			t.Errorf("%s:\nhave %s\nwant %s", when, have, want)
		}
	}
	// A /29 has the numbers 3 to 5 for pods: 1 is the router's, 2 the node's, 6 that of health checks, 7 broadcast.
	check("two pods", "n1 2/1; n2 0/3; 10.1.0.0/16 2/8190; fd01::/48 2/65534; join 0/253")
	for i := range 5 {
		w.put(pod(fmt.Sprintf("more-%d", i), "n1"))
	}
	check("a full node", "n1 3/0; n2 0/3; 10.1.0.0/16 2/8190; fd01::/48 2/65534; join 0/253")
	w.drop(node("n1", 1))
	check("a node is gone", "n2 0/3; 10.1.0.0/16 1/8191; fd01::/48 1/65535; join 0/253")
}
