package config_test

import (
	"reflect"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// What the lists of ranges accept comes back from its own text, and no input panics.
func FuzzRanges(f *testing.F) {
	f.Add("10.128.0.0/14/23,fd01::/48/64")
	f.Add("10.96.0.0/16, fd02::/112,,")
	f.Add("::ffff:10.0.0.0/104")
	f.Fuzz(func(t *testing.T, text string) {
		if want, err := config.ParseClusterSubnets(text); err == nil {
			got, err := config.ParseClusterSubnets(config.SubnetList(want))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("cluster subnets %q: %v came back as %v, %v", text, want, got, err)
			}
		}
		if want, err := config.ParsePrefixes("ranges", text); err == nil {
			got, err := config.ParsePrefixes("ranges", config.PrefixList(want))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("ranges %q: %v came back as %v, %v", text, want, got, err)
			}
		}
	})
}

// What the lists of addresses and of bridges accept has no empty part, and no input panics.
func FuzzLists(f *testing.F) {
	f.Add("172.17.42.31/16,fd99::1/64")
	f.Add("172.18.0.2,fe80::1%eth0")
	f.Add("physnet:br-phys,other:br-other")
	f.Fuzz(func(t *testing.T, text string) {
		if addrs, err := config.ParseAddrs("addresses", text); err == nil {
			for _, a := range addrs {
				if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
					t.Errorf("address %v of %q", a, text)
				}
			}
		}
		if addrs, err := config.ParseInterfaceAddrs("addresses", text); err == nil {
			for _, a := range addrs {
				if !a.IsValid() || a.Addr().Is4In6() {
					t.Errorf("address %v of %q", a, text)
				}
			}
		}
		if mappings, err := config.ParseBridgeMappings(text); err == nil {
			for _, m := range mappings {
				if m.Network == "" || m.Bridge == "" {
					t.Errorf("mapping %v of %q", m, text)
				}
			}
		}
	})
}
