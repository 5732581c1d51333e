package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// What is told when a network that namespaces share comes and goes before and after them. Pods and services of a
// namespace that is not known may be in it; nothing is kept of such a namespace.
func TestSharedPrimaries(t *testing.T) {
	s := NewState(config.DefaultCluster())
	all := cluster.NewLabelSelector()
	network := &cluster.UserNetwork{Name: cluster.Name{Name: "team"}, Selects: &all, Network: &cluster.Network{
		Name: ".team", Topology: cluster.Layer2, Primary: true, UserDefined: true}}
	namespace := func(name string, labels ...string) *cluster.Namespace {
		n := &cluster.Namespace{Name: name}
		for _, l := range labels {
			n.Labels = cluster.NewLabels(map[string]string{l: ""})
		}
		return n
	}
	pod := &cluster.Pod{Name: cluster.Name{Namespace: "late", Name: "a"}, Node: "n1"}
	service := &cluster.Service{Name: cluster.Name{Namespace: "later", Name: "a"}}
	plain, red := namespace("plain"), namespace("red", names.PrimaryLabel)
	for _, step := range []struct {
		o              cluster.Object
		gone           bool
		topics, locked string
		any            bool
	}{
		{plain, false, "", "[]", false},
		{pod, false, "", "[]", false},
		{service, false, "", "[]", false},
		{network, false, "late later ", "[]", true},
		{red, false, "red ", "[red]", true},
		{namespace("late"), false, "late ", "[red]", true},
		{namespace("later", names.PrimaryLabel), false, "later ", "[later red]", true},
		{red, true, "red ", "[later]", true},
		{namespace("later"), true, "later ", "[]", true},
		{network, true, "later ", "[]", false},
		{red, false, "red ", "[red]", true}, // it waits for a network
		{red, true, "red ", "[]", false},
	} {
		e := cluster.Event{Ref: step.o.Ref(), New: step.o}
		if step.gone {
			e.New = nil
		}
		any := PrimariesOf(s).Any()
		c, _ := s.Apply(e)
		about := c.About(PrimaryOf)
		slices.SortFunc(about, cluster.CompareNames)
		topics := ""
		for _, n := range about {
			topics += n.Name + " "
		}
		x := PrimariesOf(s)
		if locked := fmt.Sprint(x.Namespaces()); topics != step.topics || locked != step.locked || x.Any() != step.any ||
			c.Concerns(PrimariesUsed) != (any != step.any) {
			t.Errorf("%s, gone: %v: topics %q, locked %s, any %v; want %q, %s, %v", step.o.Ref(), step.gone, topics, locked,
				x.Any(), step.topics, step.locked, step.any)
		}
	}
}
