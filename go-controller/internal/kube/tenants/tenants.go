package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/write"
)

// Namespace is a namespace and its tenant.
type Namespace struct {
	Name    string `json:"namespace"`
	Tenant  string `json:"tenant"`            // "*" for a global namespace
	Problem string `json:"problem,omitempty"` // with its annotation

	uid, version string
}

// Namespaces are those of a cluster, sorted by name.
type Namespaces []Namespace

// Read lists the namespaces of a cluster.
func Read(ctx context.Context, c *client.Clients) (Namespaces, error) {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces from the API server %s: %w", c.Server, err)
	}
	var out Namespaces
	row := kinds.Namespace()
	for i := range list.Items {
		item := &list.Items[i]
		o, problems := row.Decode(item)
		n, ok := o.(*cluster.Namespace)
		if !ok {
			return nil, fmt.Errorf("decoding Namespace %s: it is a %T", item.Name, o)
		}
		out = append(out, Namespace{Name: n.Name, Tenant: n.InTenant(), Problem: tenantProblem(problems), uid: n.UID,
			version: item.ResourceVersion})
	}
	slices.SortFunc(out, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// tenantProblem is what is wrong with the annotation about a tenant, "" for nothing.
func tenantProblem(problems []cluster.Problem) string {
	for _, p := range problems {
		if p.Reason == kinds.ReasonTenant {
			return p.Message
		}
	}
	return ""
}

// WriteText prints the namespaces as a table.
func (n Namespaces) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tTENANT")
	for _, x := range n {
		tenant := x.Tenant
		if tenant == cluster.GlobalTenant {
			tenant += " (global)"
		}
		if x.Problem != "" {
			tenant += "\t" + x.Problem
		}
		fmt.Fprintf(t, "%s\t%s\n", x.Name, tenant)
	}
	return t.Flush()
}

// WriteJSON prints the namespaces as a JSON list.
func (n Namespaces) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(n)
}

// Change is the tenant that a namespace is to be of.
type Change struct {
	Namespace
	To string
}

// Needed is false when the namespace is of that tenant already.
func (c Change) Needed() bool { return c.Tenant != c.To || c.Problem != "" }

// Join has namespaces join the tenant of another.
func (n Namespaces) Join(to string, names []string) ([]Change, error) {
	target, err := n.find(to)
	if err != nil {
		return nil, err
	}
	if target.Tenant == cluster.GlobalTenant {
		return nil, fmt.Errorf("joining Namespace %s: it is global and has no tenant: `ovnkube tenant global` makes "+
			"others global, too", to)
	}
	return n.change(names, func(string) string { return target.Tenant })
}

// Global makes namespaces global.
func (n Namespaces) Global(names []string) ([]Change, error) {
	return n.change(names, func(string) string { return cluster.GlobalTenant })
}

// Isolate makes each of the namespaces a tenant of its own. Its name is the namespace's. If another namespace is of the
// tenant of that name, a number is added.
func (n Namespaces) Isolate(names []string) ([]Change, error) {
	taken := slices.Clone(n)
	return n.change(names, func(name string) string {
		others := func(tenant string) bool {
			return slices.ContainsFunc(taken, func(x Namespace) bool {
				return x.Name != name && (x.Tenant == tenant || x.Name == tenant)
			})
		}
		at := slices.IndexFunc(taken, func(x Namespace) bool { return x.Name == name })
		if own := taken[at].Tenant; own != cluster.GlobalTenant && !others(own) {
			return own // it is alone
		}
		tenant := name
		for i := 1; others(tenant); i++ {
			suffix := fmt.Sprintf("-%d", i)
			tenant = name[:min(len(name), 63-len(suffix))] + suffix
		}
		taken[at].Tenant = tenant
		return tenant
	})
}

// change lists the changes of namespaces; to is the new tenant of one.
func (n Namespaces) change(names []string, to func(name string) string) ([]Change, error) {
	var out []Change
	var errs []error
	for _, name := range names {
		x, err := n.find(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, Change{x, to(name)})
	}
	return out, errors.Join(errs...)
}

func (n Namespaces) find(name string) (Namespace, error) {
	i := slices.IndexFunc(n, func(x Namespace) bool { return x.Name == name })
	if i < 0 {
		return Namespace{}, fmt.Errorf("there is no Namespace %q", name)
	}
	return n[i], nil
}

// Apply writes changes, and says which. It goes on when one fails.
func Apply(ctx context.Context, c *client.Clients, w io.Writer, changes []Change) error {
	var errs []error
	for _, x := range changes {
		if !x.Needed() {
			fmt.Fprintf(w, "Namespace %s %s already\n", x.Name, x.is())
			continue
		}
		if err := write.Namespace(ctx, c, x.Name, x.uid, x.version, annotation.NamespaceTenant, x.To); err != nil {
			errs = append(errs, fmt.Errorf("writing the tenant of Namespace %s: %w", x.Name, err))
			continue
		}
		fmt.Fprintf(w, "Namespace %s %s now (%s=%s)\n", x.Name, x.is(), annotation.NamespaceTenant, x.To)
	}
	return errors.Join(errs...)
}

func (c Change) is() string {
	if c.To == cluster.GlobalTenant {
		return "is global"
	}
	return "is of tenant " + c.To
}
