package allocate

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A node whose switch would have the name of the join switch is refused with a reason. Other nodes are served.
func TestReservedNodeName(t *testing.T) {
	c := config.DefaultCluster()
	s := cluster.NewState(c)
	l := New(s.Networks)
	var changes []cluster.Change
	for _, n := range []string{names.JoinSwitch, "n1"} {
		ch, _ := s.Apply(cluster.Event{Ref: cluster.Ref{Kind: cluster.KindNode, Name: cluster.Name{Name: n}},
			New: &cluster.Node{Name: n}})
		changes = append(changes, ch)
	}
	res := l.Update(s, changes)
	if len(res.Problems) != 1 || res.Problems[0].Reason != ReasonNameReserved {
		t.Errorf("problems %v, want one: %s", res.Problems, ReasonNameReserved)
	}
	if s.NodeSubnets[names.JoinSwitch] != nil || s.NodeSubnets["n1"] == nil {
		t.Errorf("subnets %v, want one for n1 alone", s.NodeSubnets)
	}
}
