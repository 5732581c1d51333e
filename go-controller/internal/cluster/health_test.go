package cluster_test

import (
	"net/netip"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestHealthSource(t *testing.T) {
	for subnet, want := range map[string]string{
		"10.244.1.0/24": "10.244.1.254", "10.244.0.0/16": "10.244.255.254", "10.0.0.8/29": "10.0.0.14", "10.0.0.8/30": "",
		"10.0.0.8/31": "", "10.0.0.8/32": "",
		"fd01::/64": "fd01::ffff:ffff", "fd01::100/120": "fd01::1ff", "fd01::/125": "fd01::7", "fd01::/126": "fd01::3",
		"fd01::/127": "", "fd01::/128": "", "fd00::/8": "fd00::ffff:ffff",
	} {
		got, ok := cluster.HealthSource(netip.MustParsePrefix(subnet))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v %v, want %q", subnet, got, ok, want)
		}
	}
}
