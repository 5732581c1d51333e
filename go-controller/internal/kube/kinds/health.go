package kinds

import (
	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// reasonHealthCheck is the reason of a Problem with a service's health check annotation.
const reasonHealthCheck = "InvalidServiceHealthCheck"

// healthCheck reads the annotation that asks for a health check by OVN.
func (d *serviceDecoder) healthCheck(annotations map[string]string) {
	raw, ok := annotations[annotation.ServiceHealthCheck]
	if !ok {
		return
	}
	h, err := annotation.ParseServiceHealthCheck(raw)
	switch {
	case err != nil:
		d.bad(reasonHealthCheck, "%v: the endpoints are not checked", err)
		return
	case d.out.Headless:
		d.bad(reasonHealthCheck, "annotation %s: a service of clusterIP None has no load balancer that could leave an "+
			"endpoint out: the endpoints are not checked", annotation.ServiceHealthCheck)
		return
	}
	d.out.HealthCheck = h
	for _, p := range d.out.Ports {
		if p.Protocol == cluster.SCTP {
			d.bad(reasonHealthCheck, "annotation %s: port %d/SCTP: OVN checks TCP and UDP: the endpoints of this port "+
				"are not checked", annotation.ServiceHealthCheck, p.Port)
		}
	}
}
