package config

import (
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// DefaultCluster is a single-stack IPv4 cluster with the classic join subnet. The IPv6 join subnet is used only if pods
// have IPv6 addresses.
func DefaultCluster() Cluster {
	return Cluster{
		Subnets:      []ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23}},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		JoinSubnets:  []netip.Prefix{netip.MustParsePrefix("100.64.1.0/24"), netip.MustParsePrefix("fd98::/64")},
		RouterName:   names.DefaultClusterRouter,
		Services:     DefaultServices(),
		Policies:     DefaultPolicies(),
		ACLLogRate:   20,
	}
}

// Default addresses and ports where the two daemons serve /metrics, /healthz and /readyz.
const (
	DefaultMasterMetrics = "127.0.0.1:9409"
	DefaultNodeMetrics   = "127.0.0.1:9410"
)
