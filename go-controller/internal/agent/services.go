package agent

import (
	"errors"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
)

// serviceMemory is the last plan of the ways in to services, and of which
// version of the services it is.
type serviceMemory struct {
	version uint64
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
	m := &a.memory.services
	if m.version == version {
		return m.plan, nil
	}
	plan, notes := serviceport.Plan(services, a.config)
	told := map[serviceport.Note]bool{}
	for _, n := range notes {
		told[n] = true
		if !m.told[n] {
			a.log.Warn("service is not served as it asks", "service", n.Service, "reason", n.Message)
		}
	}
	*m = serviceMemory{version, plan, told}
	return plan, nil
}
