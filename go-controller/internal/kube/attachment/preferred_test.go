package attachment

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
)

func TestPreferred(t *testing.T) {
	static := cluster.Asked{IPv4: netip.MustParsePrefix("10.77.0.50/16"), IPv6: netip.MustParsePrefix("fd77::50/128"),
		MAC: ipnet.MAC{2, 5: 7}}
	const fields = `"ips":["10.77.0.50/16","fd77::50"],"mac":"02:00:00:00:00:07"}`
	for value, want := range map[string]cluster.Asked{
		"ovn-kubernetes/default": {},
		`[{"name":"default","namespace":"ovn-kubernetes","interface":"ovn-udn1"}]`:  {},
		`[{"name":"default","namespace":"ovn-kubernetes",` + fields + `]`:           static,
		` {"name":"default","namespace":"ovn-kubernetes",` + fields:                 static,
		`[{"name":"default","namespace":"openshift-ovn-kubernetes",` + fields + `]`: static,
	} {
		if got := Preferred(value, ""); got != want {
			t.Errorf("%s: %+v, want %+v", value, got, want)
		}
	}
}

// The claim of the older annotation counts where the newer one names none.
func TestPreferredClaim(t *testing.T) {
	const newer = `[{"name":"default","namespace":"ovn-kubernetes","ipam-claim-reference":"new"}]`
	for _, c := range [][3]string{{"", "old", "old"}, {"ovn-kubernetes/default", "old", "old"}, {newer, "old", "new"},
		{newer, "", "new"}} {
		if got := Preferred(c[0], c[1]); got != (cluster.Asked{Claim: c[2]}) {
			t.Errorf("%s, %s: %+v, want the claim %s", c[0], c[1], got, c[2])
		}
	}
	if got := Preferred("", "No Name"); !strings.Contains(got.Unserved, "want the name of an IPAMClaim") {
		t.Errorf("%+v, want it not served", got)
	}
}

func TestPreferredThatIsNotServed(t *testing.T) {
	in := func(more string) string { return `[{"name":"default","namespace":"ovn-kubernetes",` + more + `}]` }
	for value, want := range map[string]string{
		"macvlan":    `network "macvlan" in namespace "", want default in ovn-kubernetes`,
		"[":          "not a list of networks",
		"[]":         "0 networks, want one",
		"a,b":        "2 networks, want one",
		`{"name":1}`: "want such as",
		`[{"name":"default","namespace":"red","ips":["10.77.0.50/16"]}]`: `in namespace "red", want`,
		in(`"interface":"eth0"`):                      `interface "eth0": that of a primary network is ovn-udn1`,
		in(`"default-route":["10.0.0.1"]`):            `field "default-route" is not served`,
		in(`"mac":"0a:58:00:00:00:01"`):               "mac 0a:58:00:00:00:01: addresses that begin with 0a:58",
		in(`"ips":["10.77.0.50/16","10.77.0.51/16"]`): "are of one address family",
		strings.Repeat("x", mostBytes+1):              "want at most 16384",
	} {
		got := Preferred(value, "")
		if !strings.Contains(got.Unserved, want) || got != (cluster.Asked{Unserved: got.Unserved}) ||
			len(got.Unserved) > 300 {
			t.Errorf("%.80s: %+v, want %q", value, got, want)
		}
	}
}

func FuzzPreferred(f *testing.F) {
	f.Add(`[{"name":"default","namespace":"ovn-kubernetes","ips":["10.77.0.50/16"],"mac":"02:00:00:00:00:07"}]`)
	f.Fuzz(func(t *testing.T, value string) {
		if got := Preferred(value, "vm"); got.Unserved != "" && got != (cluster.Asked{Unserved: got.Unserved}) {
			t.Errorf("%q: %+v", value, got)
		}
	})
}
