package explain

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Owner explains an object by the rows that it has.
type Owner struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`             // "namespace/name" or "name"
	Problems []string `json:"problems"`         // what is wrong with the object
	Tenant   *Tenant  `json:"tenant,omitempty"` // of a namespace or a pod
	Pods     []string `json:"pods,omitempty"`   // of a network: the pods that are in it
	Rows     Rows     `json:"rows"`

	owner nb.Owner
}

// OfOwner explains an owner of rows. problems are those of the whole cluster.
func OfOwner(c *core.Core, o nb.Owner, problems []cluster.Problem) (*Owner, error) {
	out := &Owner{Kind: string(o.Kind), Name: o.Name, Problems: []string{}, owner: o}
	rows, reports, err := rowsOf(c, o)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.Owners(), o) {
		return nil, fmt.Errorf("there is no %s %s", o.Kind, o.Name)
	}
	out.Rows, out.Tenant = rows, tenantOf(c.State, o)
	seen := map[string]bool{}
	for _, p := range append(problems, reports...) {
		text := p.Error()
		if string(p.Ref.Kind) == out.Kind && p.Ref.Name.String() == o.Name && !seen[text] {
			seen[text] = true
			out.Problems = append(out.Problems, text)
		}
	}
	return out, nil
}

// OfVanished explains rows whose owner is no longer there. Compare finds them.
func OfVanished(o nb.Owner) *Owner {
	return &Owner{Kind: string(o.Kind), Name: o.Name, owner: o, Rows: Rows{},
		Problems: []string{"there is no such object any more: the master removes its rows"}}
}

// Compare tells how the rows are in a database.
func (e *Owner) Compare(c *core.Core, v nb.View) error { return e.Rows.compare(c, e.owner, v) }

// WriteJSON prints the explanation as one JSON object.
func (e *Owner) WriteJSON(w io.Writer) error { return writeJSON(w, e) }

// WriteText prints the explanation for a person.
func (e *Owner) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s %s\n", e.Kind, e.Name)
	list(b, "Problems", e.Problems)
	list(b, "Tenant", e.Tenant.lines())
	if e.owner.Kind == names.KindCluster && e.Kind == network {
		list(b, "Pods", e.Pods)
	}
	rows := e.Rows.lines()
	switch {
	case len(e.Rows) > 0:
	case e.owner.Kind == names.KindMultiPolicy:
		rows = []string{"none of its own: it has no rule that allows anything. Interfaces that it isolates are in the " +
			"groups iso_in_... and iso_out_... of their networks"}
	case e.owner.Kind == names.KindPolicy:
		rows = []string{"none of its own: it has no rule that allows anything. Pods that it isolates are in the groups " +
			"iso_in_... and iso_out_... of their nodes"}
	}
	list(b, "Rows", rows)
	return b.Flush()
}
