package xtables

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// What the programs of the old iptables write is read, in both families. What a table has of itself is no rule.
func TestTables(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	if got := tables(t); len(got) != 0 {
		t.Errorf("a new network namespace has %v", got)
	}
	for _, command := range []string{
		"iptables-legacy -P FORWARD DROP",
		"iptables-legacy -N KUBE-FIREWALL",
		"iptables-legacy -A KUBE-FIREWALL -m comment --comment two -p udp --dport 53 -j DROP",
		"iptables-legacy -A INPUT -j KUBE-FIREWALL",
		"iptables-legacy -t nat -N KUBE-SERVICES",
		"iptables-legacy -t nat -N CNI-HOSTPORT-DNAT",
		"iptables-legacy -t nat -A PREROUTING -j KUBE-SERVICES",
		"ip6tables-legacy -t filter -A FORWARD -s fd00::/64 -j ACCEPT",
	} {
		fields := strings.Fields(command)
		testkit.Run(t, fields[0], fields[1:]...)
	}
	for _, want := range []Table{
		{Name: "filter", Rules: 2, Chains: []string{"KUBE-FIREWALL"}, DropsForwarded: true},
		{Name: "nat", Rules: 1, Chains: []string{"CNI-HOSTPORT-DNAT", "KUBE-SERVICES"}},
		{Name: "filter", IPv6: true, Rules: 1},
	} {
		if got := tables(t); !slices.ContainsFunc(got, func(g Table) bool { return same(g, want) }) {
			t.Errorf("got %+v, which lacks %+v", got, want)
		}
	}
	// What preflight says to type.
	testkit.Run(t, "sh", "-c", "iptables-legacy-save | grep -v -e KUBE- | iptables-legacy-restore")
	testkit.Run(t, "iptables-legacy", "-P", "FORWARD", "ACCEPT")
	for _, want := range []Table{{Name: "filter"}, {Name: "nat", Chains: []string{"CNI-HOSTPORT-DNAT"}}} {
		if got := tables(t); !slices.ContainsFunc(got, func(g Table) bool { return same(g, want) }) {
			t.Errorf("after their removal got %+v, which lacks %+v", got, want)
		}
	}
}

func tables(t *testing.T) []Table {
	t.Helper()
	out, err := Tables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range out {
		slices.Sort(table.Chains)
	}
	return out
}

func same(a, b Table) bool {
	return a.Name == b.Name && a.IPv6 == b.IPv6 && a.Rules == b.Rules && a.DropsForwarded == b.DropsForwarded &&
		slices.Equal(a.Chains, b.Chains)
}

// Entries that are cut, or point outside, are an error and no panic.
func TestParseBadEntries(t *testing.T) {
	for _, f := range []family{ipv4(), ipv6()} {
		for _, size := range []int{1, f.head, f.head + targetData} {
			if _, err := f.parse(1<<forward, [5]uint32{}, make([]byte, size)); err == nil {
				t.Errorf("%d bytes of %s: no error", size, f.list)
			}
		}
	}
}
