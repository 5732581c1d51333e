package index

import (
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// A State that was made without an index gives the same answers.
func TestAnswersWithoutAnIndex(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	apply(t, s, &cluster.Node{Name: "n1", Zone: "a"})
	apply(t, s, &cluster.Node{Name: "n2"})
	if got := ZonesOf(s).List(); !slices.Equal(got, []string{"", "a"}) {
		t.Errorf("zones %q, want none and a", got)
	}
}
