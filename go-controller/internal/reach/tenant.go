package reach

import (
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
)

// tenantsApart says which tenants keep a server from a client. The client may be an address of pods that no pod has.
func (c *Cluster) tenantsApart(server, client End) string {
	tenants := index.TenantsOf(c.State)
	if server.pod == nil {
		return "its tenant does not let others in"
	}
	own := tenants.Of(server.pod.Name.Namespace)
	if client.pod == nil {
		return fmt.Sprintf("tenant %s does not let in addresses of pods that no pod of it has", own)
	}
	return fmt.Sprintf("tenant %s does not let in tenant %s", own, tenants.Of(client.pod.Name.Namespace))
}

// withinTenant begins what policies leave open with what a tenant does.
func withinTenant(tenant, side string, open []string) []string {
	only := fmt.Sprintf("of pods, only %s those of tenant %s and of global namespaces", side, tenant)
	return slices.Insert(open, 0, only)
}
