package explain

import (
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Tenant is the tenant of a namespace, and of its pods.
type Tenant struct {
	Name       string   `json:"name"`       // "*" for global namespaces
	Namespaces []string `json:"namespaces"` // of the same tenant
}

// tenantOf is the tenant of a namespace or a pod; nil for other owners, and in a cluster without tenants.
func tenantOf(s *cluster.State, o nb.Owner) *Tenant {
	namespace := o.Name
	switch o.Kind {
	case names.KindPod:
		namespace = cluster.ParseName(o.Name).Namespace
	case names.KindNamespace:
	default:
		return nil
	}
	tenants := index.TenantsOf(s)
	name := tenants.Of(namespace)
	if name == "" {
		return nil
	}
	return &Tenant{name, tenants.Namespaces(name)}
}

// Global is true for the tenant of namespaces that reach all others, and that all others reach.
func (t *Tenant) Global() bool { return t.Name == cluster.GlobalTenant }

// lines prints the tenant for a person.
func (t *Tenant) lines() []string {
	if t == nil {
		return nil
	}
	if t.Global() {
		return []string{"none: a global namespace reaches all tenants, and all reach it"}
	}
	return []string{t.Name + ": " + strings.Join(t.Namespaces, ", ")}
}
