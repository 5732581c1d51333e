package offline

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// Cluster is a cluster and its translation.
type Cluster struct {
	State       *cluster.State
	Schema      *nb.Schema
	Translators translate.Set
	Patches     []assign.Patch    // annotations that the master would write
	Problems    []cluster.Problem // what assign refused or had nothing left for
}

// New takes in the objects, each of them once.
func New(c config.Cluster, objects []cluster.Object) *Cluster {
	schema := nb.NewSchema()
	out := &Cluster{State: cluster.NewState(c), Schema: schema, Translators: all.Translators(schema)}
	var changes []cluster.Change
	for _, o := range objects {
		if change, ok := out.State.Apply(cluster.Event{Ref: o.Ref(), New: o}); ok {
			changes = append(changes, change)
		}
	}
	res := assign.New(c).Assign(out.State, changes)
	out.Patches, out.Problems = res.Patches, append(res.Problems, homeless(out.State)...)
	return out
}

// ReasonNodeUnknown is the reason of a Problem of a pod whose node is not
// among the objects.
const ReasonNodeUnknown = "NodeUnknown"

// homeless lists the pods whose node is not among the objects. In a running
// cluster that is a matter of time; here it is final.
func homeless(s *cluster.State) []cluster.Problem {
	var out []cluster.Problem
	for n, p := range s.Pods {
		if p.WantsNetwork() && s.Nodes[p.Node] == nil {
			out = append(out, cluster.Problem{Ref: p.Ref(), UID: p.UID, Reason: ReasonNodeUnknown,
				Message: fmt.Sprintf("spec.nodeName: Node %s is not among the objects: pod %s gets no port", p.Node, n)})
		}
	}
	slices.SortFunc(out, func(a, b cluster.Problem) int { return cluster.CompareNames(a.Ref.Name, b.Ref.Name) })
	return out
}

// Database is the Northbound database that the cluster wants. An owner whose
// rows can't be made is an error, and is left out.
func (c *Cluster) Database() (*nb.Database, []error) {
	db := nb.NewDatabase(c.Schema)
	var errs []error
	var plans []nb.Plan
	scope := nb.Scope{}
	for _, o := range c.Translators.Owners(c.State) {
		rows, err := c.Translators.Rows(c.State, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("translating %s: %w", o, err))
			continue
		}
		// Nothing is there yet, so all plans make one transaction.
		p, err := c.Schema.Plan(db, o, rows, scope)
		if err != nil {
			errs = append(errs, fmt.Errorf("translating %s: %w", o, err))
			continue
		}
		plans = append(plans, p)
	}
	if err := db.Apply(plans...); err != nil {
		errs = append(errs, err)
	}
	return db, errs
}
