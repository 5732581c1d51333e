package nft

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The rules of a hairpin mean what they should, and come back as they were
// whatever somebody does to them.
func TestHairpin(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	want := hostplan.Hairpin{Link: "m0", V4: netip.MustParseAddr("10.1.0.2"), V6: netip.MustParseAddr("fd01::2")}
	other := hostplan.Masquerade{V4: netip.MustParsePrefix("10.1.0.0/24"), Except: "m0"}
	converge(t, k, want, other)
	chains := func() (out string) {
		for _, c := range hairpinChains() {
			out += testkit.Run(t, "nft", "list", "chain", "inet", "northbound", c.Name)
		}
		return out
	}
	before := chains()
	for _, rule := range []string{
		`type filter hook prerouting priority raw;`, `iifname "m0" ip saddr 10.1.0.2 ip saddr set 169.254.169.6 `,
		`iifname "m0" ip6 saddr fd01::2 ip6 saddr set fd69::6 `,
		`type filter hook postrouting priority 300;`, `oifname "m0" ip daddr 169.254.169.6 ip daddr set 10.1.0.2 `,
		`oifname "m0" ip6 daddr fd69::6 ip6 daddr set fd01::2 `,
		`type nat hook postrouting priority srcnat;`, `ip saddr 169.254.169.6 oifname != "m0" masquerade `,
		`ip6 saddr fd69::6 oifname != "m0" masquerade `,
		`type nat hook prerouting priority dstnat + 10;`,
		`iifname "m0" ip saddr != 169.254.169.6 meta l4proto udp fib daddr type local socket wildcard 1 dnat ip to 10.1.0.2 `,
		`iifname "m0" ip6 saddr != fd69::6 meta l4proto udp fib daddr type local socket wildcard 1 dnat ip6 to fd01::2 `,
	} {
		if strings.Count(before, rule) != 1 {
			t.Errorf("want %q once in\n%s", rule, before)
		}
	}
	for _, damage := range []string{
		"flush chain inet northbound hairpin-in", "add rule inet northbound hairpin-out drop",
		"delete chain inet northbound hairpin-masq",
		"delete chain inet northbound hairpin-out; " +
			"add chain inet northbound hairpin-out { type filter hook input priority 0; }",
		"insert rule inet northbound hairpin-in ip6 saddr fd01::2 accept", "delete table inet northbound",
	} {
		testkit.Run(t, "nft", damage)
		if changes := converge(t, k, want, other); len(changes) == 0 {
			t.Errorf("%s: not noticed", damage)
		}
		if after := chains(); after != before {
			t.Errorf("after %s:\n%s\nbefore:\n%s", damage, after, before)
		}
	}
	for _, gone := range []hostplan.Item{other, want} {
		if err := k.Apply(item.Change{Have: gone}); err != nil {
			t.Fatal(err)
		}
	}
	if tables := testkit.Run(t, "nft", "list", "tables"); strings.TrimSpace(tables) != "" {
		t.Errorf("left: %s", tables)
	}
}
