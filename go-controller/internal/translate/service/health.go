package service

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// healthChecks has OVN check the endpoints of a load balancer: its ip_port_mappings list the endpoints that can be
// checked, and each VIP gets a row with the parameters. OVN takes an endpoint without a mapping for healthy, and does
// not check SCTP (ovn-nb(5), Load_Balancer health_check).
func (r serviceRows) healthChecks(
	proto cluster.Protocol, role string, lb *nbdb.LoadBalancer, eps []*cluster.EndpointSlice,
) []nb.Row {
	if !Checks(r.svc, proto) || !r.network.Hosts {
		return nil
	}
	svc := r.svc
	lb.IPPortMappings = mappings(r.state, eps)
	h := svc.HealthCheck
	options := map[string]string{
		"interval": strconv.Itoa(h.Interval), "timeout": strconv.Itoa(h.Timeout),
		"success_count": strconv.Itoa(h.Successes), "failure_count": strconv.Itoa(h.Failures),
	}
	var rows []nb.Row
	for _, vip := range slices.Sorted(maps.Keys(lb.Vips)) {
		rows = append(rows, r.Row(role+"-"+names.RoleHealthCheck+"-"+vip,
			&nbdb.LoadBalancerHealthCheck{Vip: vip, Options: options}, r.In(nbdb.LoadBalancerTable, role, "health_check")))
	}
	return rows
}

// Checks is true when OVN checks the service's endpoints of a protocol.
func Checks(svc *cluster.Service, proto cluster.Protocol) bool {
	return svc.HealthCheck.Interval > 0 && proto != cluster.SCTP
}

// mappings is, for each endpoint that can be checked, its logical port and the address that the check comes from: "IP"
// to "PORT:SOURCE", with brackets around IPv6 addresses (ovn-nb(5), Load_Balancer ip_port_mappings).
func mappings(s *cluster.State, eps []*cluster.EndpointSlice) map[string]string {
	out, checks := map[string]string{}, index.HealthChecksOf(s)
	for _, slice := range eps {
		for _, e := range slice.Endpoints {
			if p, ok := checks.ProbeOf(s, slice.Name.Namespace, e); ok {
				out[bracketed(e.Addr)] = names.Own.LogicalPort(p.Pod.Namespace, p.Pod.Name, "") + ":" + bracketed(p.Source)
			}
		}
	}
	return out
}

func bracketed(a netip.Addr) string {
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}
