package reconcile

import (
	"errors"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Preview plans every owner and writes nothing: what a full pass would do now,
// in order. Owners that can't be translated or planned are in the error; the
// others are planned all the same.
func Preview(s *cluster.State, ts translate.Set, schema *nb.Schema, session *ovsdb.Session) ([]nb.Plan, error) {
	var plans []nb.Plan
	var errs []error
	view, inserted := session.View(), nb.Scope{}
	owners := append(ts.Owners(s), session.Owners()...)
	slices.SortFunc(owners, nb.Owner.Compare)
	for _, o := range slices.Compact(owners) {
		want, err := ts.Rows(s, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p, err := schema.Plan(view, o, want, inserted)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !p.Empty() {
			plans = append(plans, p)
		}
	}
	plans, _ = nb.Settled(plans)
	return plans, errors.Join(errs...)
}
