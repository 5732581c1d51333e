package reach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Rows is how the rows that decide about connections are in a database.
type Rows struct {
	WithoutTiers bool // there are ClusterNetworkPolicies, and the database has no tiers for them

	different int      // rows that the master would add, change or remove
	policies  []string // with such rows, sorted: "np/shop/web"
}

// RowsOf reads plans from a database to what the master wants.
func RowsOf(plans []nb.Plan) *Rows {
	out := &Rows{}
	for _, p := range plans {
		switch p.Owner.Kind {
		case names.KindPolicy, names.KindClusterPolicy, names.KindMultiPolicy:
			out.policies = append(out.policies, objectOf(p.Owner))
			out.different += p.Ops()
		case names.KindSelector, names.KindIsolation, names.KindNetworkIsolation, names.KindTenant, names.KindNamespace,
			names.KindPod:
			out.different += p.Ops()
		}
	}
	slices.Sort(out.policies)
	return out
}

// mostPolicies is how many policies a note names.
const mostPolicies = 3

// Notes says whether the policies are in effect as they are compared.
func (r *Rows) Notes() []string {
	out := []string{"The Northbound database has the rows of the policies as they are now."}
	if r.different > 0 {
		text := fmt.Sprintf("The Northbound database is not yet what the cluster wants now. Changes due to rows of "+
			"policies, selectors and pods: %d", r.different)
		if n := len(r.policies); n > mostPolicies {
			text += fmt.Sprintf(", such as those of %s and %d more", strings.Join(r.policies[:mostPolicies], ", "),
				n-mostPolicies)
		} else if n > 0 {
			text += ", also of " + strings.Join(r.policies, ", ")
		}
		out[0] = text + ". Until the master has made them, connections may be otherwise than before or after: see ovnkube " +
			"plan."
	}
	if r.WithoutTiers {
		out = append(out, "The Northbound database has no tiers of ACLs: ClusterNetworkPolicies have no effect before OVN "+
			"23.06, whatever is compared here.")
	}
	return out
}
