package agent

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func TestServerHost(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.0.0.1:6443": "10.0.0.1:6443", "https://[fd18::1]:6443/path": "[fd18::1]:6443",
		"https://api.example": "api.example:443", "http://api.example": "api.example:80",
		"10.0.0.1:8080": "10.0.0.1:8080", "api.example": "api.example:443", "": "", "https://": "",
	} {
		if got := serverHost(server); got != want {
			t.Errorf("%q: %q, want %q", server, got, want)
		}
	}
}

func TestRemoteHosts(t *testing.T) {
	got := config.RemoteHosts("unix:/run/ovn/ovnsb_db.sock, tcp:192.0.2.1:6642,ssl:[fd18::1]:6642,ptcp:6642,nonsense")
	if want := []string{"192.0.2.1:6642", "[fd18::1]:6642"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Addresses need no look-up. A name that can't be looked up keeps its last addresses, until nobody uses it.
func TestResolve(t *testing.T) {
	last := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:6443")}
	a := &Agent{}
	u := &a.memory.uses
	u.asked, u.resolved = time.Now(), map[string][]netip.AddrPort{"api.invalid:6443": last, "old.invalid:1": last}
	a.resolve(t.Context(), []string{"[::ffff:192.0.2.1]:6642", "api.invalid:6443", "new.invalid:6443", "nonsense"})
	if got := u.resolved["[::ffff:192.0.2.1]:6642"]; len(got) != 1 || got[0].String() != "192.0.2.1:6642" {
		t.Errorf("an address: %v", got)
	}
	if got := u.resolved["api.invalid:6443"]; !slices.Equal(got, last) {
		t.Errorf("a name: %v, want %v", got, last)
	}
	if len(u.resolved["old.invalid:1"])+len(u.resolved["new.invalid:6443"])+len(u.resolved["nonsense"]) != 0 {
		t.Errorf("others: %v", u.resolved)
	}
}
