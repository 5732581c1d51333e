package nb

import (
	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// written names what this version writes of a table. Everything else about the table comes from the database's schema.
type written struct {
	table   string
	zero    model.Model
	columns []string // columns that belong to us; of external_ids only our keys
	slots   []string // columns that refer to rows of many owners: each owner adds and removes its own
}

// tables lists what this version writes, parents before what they list.
func tables() []written {
	return []written{
		{nbdb.LogicalRouterTable, &nbdb.LogicalRouter{},
			[]string{"name", "options", "load_balancer_group", "external_ids"},
			[]string{"ports", "static_routes", "nat", "policies"}},
		{nbdb.LogicalSwitchTable, &nbdb.LogicalSwitch{},
			[]string{"name", "other_config", "load_balancer_group", "external_ids"},
			[]string{"ports", "qos_rules", "load_balancer", "acls"}},
		{nbdb.LogicalRouterPortTable, &nbdb.LogicalRouterPort{},
			[]string{"name", "mac", "networks", "options", "external_ids"}, nil},
		{nbdb.LogicalRouterStaticRouteTable, &nbdb.LogicalRouterStaticRoute{},
			[]string{"ip_prefix", "nexthop", "output_port", "policy", "options", "external_ids"}, nil},
		{nbdb.LogicalRouterPolicyTable, &nbdb.LogicalRouterPolicy{},
			[]string{"priority", "match", "action", "nexthops", "options", "external_ids"}, nil},
		{nbdb.NATTable, &nbdb.NAT{},
			[]string{"type", "logical_ip", "external_ip", "external_port_range", "options", "external_ids"}, nil},
		{nbdb.PortGroupTable, &nbdb.PortGroup{},
			[]string{"name", "external_ids"},
			[]string{"ports", "acls"}},
		{nbdb.LogicalSwitchPortTable, &nbdb.LogicalSwitchPort{},
			[]string{"name", "type", "addresses", "port_security", "enabled", "tag", "options", "external_ids"}, nil},
		{nbdb.QoSTable, &nbdb.QoS{},
			[]string{"priority", "direction", "match", "bandwidth", "external_ids"}, nil},
		{nbdb.ACLTable, &nbdb.ACL{},
			[]string{"priority", "direction", "match", "action", "name", "severity", "log", "meter", "label", "tier",
				"options", "external_ids"}, nil},
		{nbdb.MeterTable, &nbdb.Meter{}, []string{"name", "unit", "bands", "fair", "external_ids"}, nil},
		{nbdb.MeterBandTable, &nbdb.MeterBand{}, []string{"action", "rate", "burst_size", "external_ids"}, nil},
		{nbdb.LoadBalancerGroupTable, &nbdb.LoadBalancerGroup{},
			[]string{"name"},
			[]string{"load_balancer"}},
		{nbdb.LoadBalancerTable, &nbdb.LoadBalancer{},
			[]string{"name", "protocol", "vips", "options", "selection_fields", "ip_port_mappings", "external_ids"},
			[]string{"health_check"}},
		{nbdb.LoadBalancerHealthCheckTable, &nbdb.LoadBalancerHealthCheck{},
			[]string{"vip", "options", "external_ids"}, nil},
		{nbdb.AddressSetTable, &nbdb.AddressSet{},
			[]string{"name", "addresses", "external_ids"}, nil},
	}
}
