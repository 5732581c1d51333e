package subnet

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ subnet, router, management string }{
		{"10.244.1.0/24", "10.244.1.1", "10.244.1.2"},
		{"10.244.1.77/24", "10.244.1.1", "10.244.1.2"},
		{"fd00:10:244:1::/64", "fd00:10:244:1::1", "fd00:10:244:1::2"},
		{"10.244.1.0/31", "10.244.1.1", ""},
		{"10.244.1.0/32", "", ""},
	} {
		router, ok1 := Router(netip.MustParsePrefix(c.subnet))
		management, ok2 := Management(netip.MustParsePrefix(c.subnet))
		if ok1 != (c.router != "") || ok1 && router.String() != c.router {
			t.Errorf("router of %s: %s %v, want %q", c.subnet, router, ok1, c.router)
		}
		if ok2 != (c.management != "") || ok2 && management.String() != c.management {
			t.Errorf("management port of %s: %s %v, want %q", c.subnet, management, ok2, c.management)
		}
	}
}
