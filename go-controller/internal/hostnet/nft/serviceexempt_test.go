package nft

import (
	"fmt"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Real packets: what the node itself uses is not redirected, whatever other entries say. Others' connections are.
func TestServiceExempt(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := localBed(t)
	testkit.StartWhoami(t, "outside", 8080)
	seen := func(from, at, want string) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprintf("%q asks %s", from, at), func() string { // neighbours are found by the first
			if as, err := testkit.AskOnce(from, "tcp", at); as != want || err != nil {
				return fmt.Sprintf("seen as %s, %v; want %s", as, err, want)
			}
			return ""
		})
	}
	for _, f := range []struct{ at, to, own, through string }{
		{"198.51.100.2:8080", "10.96.0.10:8080", "198.51.100.1", "10.1.0.2"},
		{"[2001:db8:5::2]:8080", "[fd02::10]:8080", "2001:db8:5::1", "fd01::2"},
	} {
		redirect := fmt.Sprintf("serve TCP %s to %s", f.at, f.to)
		converge(t, k, servicePorts(t, redirect))
		seen("", f.at, f.through)
		converge(t, k, servicePorts(t, redirect, "exempt TCP "+f.at))
		seen("", f.at, f.own)
		seen("p5", f.at, f.through)
	}
}
