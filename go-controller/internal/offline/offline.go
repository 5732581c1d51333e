package offline

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// Cluster is a cluster and its translation.
type Cluster struct {
	*core.Core
	Patches  []allocate.Patch  // annotations that the master would write
	Problems []cluster.Problem // what would be reported to users

	batch *core.Batch
}

// New translates the objects, each of them once.
func New(c config.Cluster, objects []cluster.Object) *Cluster {
	schema := nb.NewSchema()
	return NewOf(c, schema, all.Translators(schema), objects)
}

// NewOf is New with other translators than those of the product.
func NewOf(c config.Cluster, schema *nb.Schema, ts translate.Set, objects []cluster.Object) *Cluster {
	out := &Cluster{Core: core.New(c, schema, ts)}
	events := make([]cluster.Event, 0, len(objects))
	for _, o := range objects {
		events = append(events, cluster.Event{Ref: o.Ref(), New: o})
	}
	for _, r := range []core.Result{out.Step(events), out.Start()} {
		out.Patches = append(out.Patches, r.Patches...)
		out.Problems = append(out.Problems, r.Problems...)
	}
	out.batch = out.Plan(nb.NewDatabase(schema), out.Owners(), nil) // an empty database: one transaction makes all rows
	out.Problems = slices.Concat(out.Problems, out.News(out.batch), withoutNode(out.State))
	return out
}

// ReasonNodeUnknown is the reason of the Problem that a pod's node is not among the objects.
const ReasonNodeUnknown = "NodeUnknown"

// withoutNode lists the pods whose node is not among the objects. In a running cluster the node may come later; here it
// can't.
func withoutNode(s *cluster.State) []cluster.Problem {
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

// Database is the Northbound database that the cluster wants. An owner whose rows can't be made is left out, and is an
// error.
func (c *Cluster) Database() (*nb.Database, []error) {
	db := nb.NewDatabase(c.Schema)
	var errs []error
	for _, f := range c.batch.Failed {
		errs = append(errs, f.Err)
	}
	if err := db.Apply(c.batch.Plans...); err != nil {
		errs = append(errs, err)
	}
	return db, errs
}
