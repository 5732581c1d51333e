package explain

import (
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
)

// checks describes how OVN checks the service's endpoints, "" if it does not. The results are not in the Northbound
// database.
func checks(svc *cluster.Service) string {
	h := svc.HealthCheck
	if h.Interval == 0 {
		return ""
	}
	return fmt.Sprintf("metadata.annotations: %s: OVN checks pods over TCP and UDP every %d s and waits %d s for an "+
		"answer; %d failures take an endpoint out, %d successes bring it back; see `ovn-sbctl list Service_Monitor`",
		annotation.ServiceHealthCheck, h.Interval, h.Timeout, h.Failures, h.Successes)
}

// noteChecks sets the address from which each endpoint is checked. notes says why some endpoints are not checked.
func noteChecks(s *cluster.State, svc *cluster.Service, ports []Port) (notes []string) {
	seen := map[string]bool{}
	for _, p := range ports {
		if !service.Checks(svc, cluster.Protocol(p.Protocol)) {
			continue
		}
		for i, e := range p.Endpoints {
			at, err := netip.ParseAddrPort(e.Address)
			if err != nil {
				continue // an endpoint without the port
			}
			endpoint := cluster.Endpoint{Addr: at.Addr(), Node: e.Node, Pod: e.Pod}
			if probe, ok := index.HealthChecksOf(s).ProbeOf(s, svc.Name.Namespace, endpoint); ok {
				p.Endpoints[i].Checked = probe.Source.String()
			} else if line := unchecked(s, at.Addr(), e); line != "" && !seen[line] {
				seen[line] = true
				notes = append(notes, line)
			}
		}
	}
	return notes
}

// unchecked explains that an endpoint is not checked because a pod has the source address of the checks. It returns ""
// if that is not the reason.
func unchecked(s *cluster.State, addr netip.Addr, e Endpoint) string {
	for _, subnet := range s.NodeSubnets[e.Node] {
		if holder, held := index.HealthChecksOf(s).SourceHolder(subnet); held && e.Pod != "" && subnet.Contains(addr) {
			source, _ := cluster.HealthSource(subnet)
			return fmt.Sprintf("endpoints in %s of node %s are not checked while Pod %s has the address %s, "+
				"which is the source of the checks", subnet, e.Node, holder, source)
		}
	}
	return ""
}
