package serviceport

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Check is what load balancers outside of the cluster are told when they ask
// at a service's healthCheckNodePort whether to send it connections by way of
// this node (Kubernetes API, ServiceSpec.healthCheckNodePort).
type Check struct {
	Port    uint16
	Service cluster.Name
	// Endpoints is how many of this node are ready: 0 is no. Those that
	// terminate still serve and don't count, so that the load balancer turns
	// away before they are gone (KEP-1669). A pod with an address of each family
	// is one.
	Endpoints int
}

// Checks lists what is asked for, by port; of two services that name one port
// the first by name has it.
func Checks(services []*cluster.Service, f Facts, c config.Node) (out []Check) {
	for _, s := range cluster.Share(services, c.Services) {
		if s.HealthCheckPort != 0 && s.ExternalLocal {
			eps := f.reached(s, c.Services, f.Endpoints[s.Name])
			out = append(out, Check{s.HealthCheckPort, s.Name, readyOn(c.Name, eps)})
		}
	}
	slices.SortFunc(out, func(a, b Check) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cluster.CompareNames(a.Service, b.Service))
	})
	return slices.CompactFunc(out, func(a, b Check) bool { return a.Port == b.Port })
}

func readyOn(node string, eps []*cluster.EndpointSlice) int {
	families := map[bool]map[netip.Addr]bool{true: {}, false: {}}
	for _, slice := range eps {
		for _, e := range slice.Endpoints {
			if e.Node == node && e.Conditions.Has(cluster.Ready) {
				families[e.Addr.Is4()][e.Addr] = true
			}
		}
	}
	return max(len(families[true]), len(families[false]))
}
