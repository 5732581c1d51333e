package service

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// checked completes a load balancer for a service that has its endpoints checked
// by OVN: who can be is in its ip_port_mappings, and each VIP has a row that
// says how. The rows are the load balancer's and these. OVN takes an endpoint
// without a mapping for healthy, and checks no SCTP (ovn-nb(5),
// Load_Balancer health_check).
func (t Translator) checked(s *cluster.State, svc *cluster.Service, row nb.Row) []nb.Row {
	rows := []nb.Row{row}
	lb, ok := row.Model.(*nbdb.LoadBalancer)
	if !ok || !Checks(svc, cluster.Protocol(strings.ToUpper(*lb.Protocol))) {
		return rows
	}
	lb.IPPortMappings = mappings(s, svc)
	h := svc.HealthCheck
	options := map[string]string{
		"interval": strconv.Itoa(h.Interval), "timeout": strconv.Itoa(h.Timeout),
		"success_count": strconv.Itoa(h.Successes), "failure_count": strconv.Itoa(h.Failures),
	}
	slot := nb.Slot{In: nb.Ref{Table: nbdb.LoadBalancerTable, UUID: lb.UUID}, Column: "health_check"}
	o := row.Key.Owner
	for _, vip := range slices.Sorted(maps.Keys(lb.Vips)) {
		role := row.Key.Role + "-" + names.RoleHealthCheck + "-" + vip
		rows = append(rows, t.Schema.NewRow(nb.Key{Table: nbdb.LoadBalancerHealthCheckTable, Owner: o, Role: role}, &nbdb.LoadBalancerHealthCheck{
			UUID: names.RowUUID(nbdb.LoadBalancerHealthCheckTable, o.Kind, o.Name, role, svc.UID), Vip: vip, Options: options,
		}, slot))
	}
	return rows
}

// Checks tells whether OVN checks the service's endpoints of a protocol.
func Checks(svc *cluster.Service, proto cluster.Protocol) bool {
	return svc.HealthCheck.Interval > 0 && proto != cluster.SCTP
}

// mappings says, for the address of each endpoint that can be checked, at which
// logical port and from where: "IP" to "PORT:SOURCE", with brackets around IPv6
// addresses (ovn-nb(5), Load_Balancer ip_port_mappings).
func mappings(s *cluster.State, svc *cluster.Service) map[string]string {
	out, checks := map[string]string{}, index.HealthChecksOf(s)
	for _, slice := range s.SlicesOf(svc.Name) {
		for _, e := range slice.Endpoints {
			if p, ok := checks.ProbeOf(s, slice.Name.Namespace, e); ok {
				out[bracketed(e.Addr)] = names.LogicalPort(p.Pod.Namespace, p.Pod.Name) + ":" + bracketed(p.Source)
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
