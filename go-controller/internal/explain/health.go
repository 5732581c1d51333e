package explain

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// checks is how OVN checks the service's endpoints, "" when it does not. What it
// finds is not in the Northbound database.
func checks(svc *cluster.Service) string {
	h := svc.HealthCheck
	if h.Interval == 0 {
		return ""
	}
	return fmt.Sprintf("metadata.annotations: %s: OVN checks pods over TCP and UDP every %d s, waits %d s for an answer, and takes one out after %d failures and in after %d successes; `ovn-sbctl list Service_Monitor` tells",
		annotation.ServiceHealthCheck, h.Interval, h.Timeout, h.Failures, h.Successes)
}

// noteChecks says of the endpoints of a service's ports from where they are
// checked.
func noteChecks(s *cluster.State, svc *cluster.Service, ports []Port) {
	for _, p := range ports {
		if !service.Checks(svc, cluster.Protocol(p.Protocol)) {
			continue
		}
		for i, e := range p.Endpoints {
			at, err := netip.ParseAddrPort(e.Address)
			if err != nil {
				continue // one without the port
			}
			if probe, ok := s.ProbeOf(svc.Name.Namespace, cluster.Endpoint{Addr: at.Addr(), Node: e.Node, Pod: e.Pod}); ok {
				p.Endpoints[i].Checked = probe.Source.String()
			}
		}
	}
}
