package core

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// A removal is large from 101 rows on, if they are more than every fifth. Its digest is that of its owners alone.
func TestLargeRemovals(t *testing.T) {
	for r, want := range map[[2]int]bool{
		{0, 0}: false, {100, 100}: false, {101, 101}: true, {101, 504}: true, {101, 505}: false, {1000, 5000}: false,
		{1001, 5000}: true,
	} {
		if got := (Removal{Rows: r[0], Of: r[1]}).Large(); got != want {
			t.Errorf("%d of %d rows: %t", r[0], r[1], got)
		}
	}
	n := func(name string) nb.Owner { return nb.Owner{Kind: names.KindNode, Name: name} }
	a, b := Removal{Owners: []nb.Owner{n("a"), n("b")}, Rows: 2}, Removal{Owners: []nb.Owner{n("a"), n("b")}, Rows: 3}
	if c := (Removal{Owners: []nb.Owner{n("a"), n("c")}}); a.Digest() != b.Digest() || a.Digest() == c.Digest() {
		t.Errorf("digests %s, %s, %s", a.Digest(), b.Digest(), c.Digest())
	}
}
