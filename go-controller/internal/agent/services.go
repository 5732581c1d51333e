package agent

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
)

// serviceMemory is the last plan of the ways in to services, and of which
// version of the services, and ranges of ClusterIPs, it is.
type serviceMemory struct {
	version uint64
	ranges  []netip.Prefix
	plan    hostplan.Plan
	told    map[serviceport.Note]bool
}

// waysIn is how services are reached from outside. It is apart from the rooms:
// as long as the services are not known, what there is stays.
func (a *Agent) waysIn() (hostplan.Plan, error) {
	services, version, ok := a.kube.Services()
	if !ok {
		return hostplan.Plan{}, errors.New("the API server has not listed the services yet: may this agent list and watch them?")
	}
	c, ok := a.ranged()
	if !ok {
		return hostplan.Plan{}, errors.New("the API server has not listed the ServiceCIDRs yet")
	}
	m := &a.memory.services
	if m.version == version && slices.Equal(m.ranges, c.ServiceCIDRs) {
		return m.plan, nil
	}
	plan, notes := serviceport.Plan(services, c)
	told := map[serviceport.Note]bool{}
	for _, n := range notes {
		told[n] = true
		if !m.told[n] {
			a.log.Warn("service is not served as it asks", "service", n.Service, "reason", n.Message)
		}
	}
	*m = serviceMemory{version, c.ServiceCIDRs, plan, told}
	return plan, nil
}

// ranged is the agent's configuration with the ranges of ClusterIPs that were
// given to it, and those that the API has now; ok is false while these are not
// known.
func (a *Agent) ranged() (c config.Node, ok bool) {
	c = a.config
	more, ok := a.kube.ServiceRanges()
	c.ServiceCIDRs = slices.Clone(c.ServiceCIDRs)
	for _, r := range more {
		if !slices.Contains(c.ServiceCIDRs, r) {
			c.ServiceCIDRs = append(c.ServiceCIDRs, r)
		}
	}
	return c, ok
}

// rangedPlan asks every room, with all ranges of ClusterIPs that are known.
func (a *Agent) rangedPlan(f hostplan.Facts) (hostplan.Plan, error) {
	c, all := a.ranged()
	plan, err := planOf(f, c)
	if err == nil && !all {
		plan.Host, err = a.withRoutes(plan.Host)
	}
	return plan, err
}

// withRoutes is want and those of our routes that are there: while not all
// ranges of ClusterIPs are known, none of them is removed.
func (a *Agent) withRoutes(want []hostplan.Item) ([]hostplan.Item, error) {
	have, err := a.kernel.Read(want)
	if err != nil {
		return nil, err
	}
	for _, i := range have {
		r, is := i.(hostplan.Route)
		if is && r.Protocol == hostplan.RouteProtocol && !slices.ContainsFunc(want, func(w hostplan.Item) bool {
			other, is := w.(hostplan.Route)
			return is && other.Dest == r.Dest
		}) {
			want = append(want, r)
		}
	}
	return want, nil
}
