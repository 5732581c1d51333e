package nft

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// servicePorts is an item for tests, with these entries in their text form.
func servicePorts(t *testing.T, lines ...string) hostplan.ServicePorts {
	t.Helper()
	var entries []hostplan.ServiceEntry
	for _, l := range lines {
		e, err := hostplan.ParseServiceEntry(l)
		if err != nil {
			t.Fatal(err)
		}
		if e.String() != l {
			t.Fatalf("%q comes back as %q", l, e)
		}
		entries = append(entries, e)
	}
	ranges := []netip.Prefix{netip.MustParsePrefix("fd02::/112"), netip.MustParsePrefix("10.96.0.0/16")}
	own := []netip.Prefix{netip.MustParsePrefix("fd01::/64"), netip.MustParsePrefix("10.1.0.0/24")}
	pods := []netip.Prefix{netip.MustParsePrefix("fd01::/48"), netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("10.2.0.0/16")}
	return hostplan.NewServicePorts(hostplan.ServiceNode{Link: "m0", Ranges: ranges, Own: own, Pods: pods}, entries)
}

// everyEntry has one of every kind, family and protocol.
func everyEntry() []string {
	return []string{
		"serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "serve UDP 0.0.0.0:30080 to 10.96.0.10:53",
		"serve SCTP [::]:30081 to [fd02::10]:80",
		"serve TCP 192.0.2.7:80 to 10.96.0.10:80", "serve TCP [2001:db8::7]:80 to [fd02::10]:80",
		"local TCP 0.0.0.0:30080 to 10.1.0.5:8080", "local SCTP [2001:db8::7]:80 to [fd01::5]:8080",
		"share UDP 0.0.0.0:30080 bucket 0 to 10.1.0.5:8080", "share TCP [::]:30080 bucket 119 to [fd01::5]:8080",
		"share TCP [2001:db8::7]:81 bucket 7 to [fd01::5]:8080",
		"stick TCP 192.0.2.7:80 bucket 7 to 10.1.0.5:8080", "stick SCTP [::]:30081 bucket 1 to [fd01::6]:8080",
		"stick TCP 0.0.0.0:30088 bucket 2 to 10.1.0.6:8080",
		"away TCP 0.0.0.0:30083 from 198.51.100.1/32 to 203.0.113.8:30083",
		"away SCTP [::]:30083 from 2001:db8:5::1/128 to [2001:db8:9::8]:30083",
		"away-share UDP 0.0.0.0:30084 from 198.51.100.1/32 bucket 11 to 203.0.113.8:30084",
		"away-share TCP [::]:30084 from 2001:db8:5::1/128 bucket 0 to [2001:db8:9::8]:30084",
		"away-stick SCTP 0.0.0.0:30085 from 198.51.100.1/32 bucket 1 to 203.0.113.8:30085",
		"away-stick UDP [::]:30085 from 2001:db8:5::1/128 bucket 7 to [2001:db8:9::8]:30085",
		"inside UDP 0.0.0.0:30080", "inside SCTP [::]:30081", "inside TCP 192.0.2.7:80", "inside TCP [2001:db8::7]:80",
		"limit TCP 192.0.2.7:80", "allow TCP 192.0.2.7:80 from 198.51.100.0/24", "allow TCP 192.0.2.7:80 from 203.0.113.9/32",
		"allow TCP 192.0.2.7:80 from 10.0.0.0/8", "limit TCP [2001:db8::7]:80",
		"allow TCP [2001:db8::7]:80 from 2001:db8:1::/48",
	}
}

// converge brings the kernel there, and has it read back.
func converge(t *testing.T, k *Tables, want ...hostplan.Item) []item.Change {
	t.Helper()
	changes, err := item.Converge(t.Context(), k, want)
	if err != nil {
		t.Fatal(err)
	}
	have, err := NewTables().Read(want) // which remembers nothing
	if err != nil {
		t.Fatal(err)
	}
	if got, want := byKey(have), byKey(want); !maps.Equal(got, want) {
		t.Fatalf("read back:\n%#v\nwant:\n%#v", got, want)
	}
	converged(t, k, want...)
	return changes
}

func byKey(items []hostplan.Item) map[string]hostplan.Item {
	out := map[string]hostplan.Item{}
	for _, i := range items {
		out[i.Key()] = i
	}
	return out
}

func ruleset(t *testing.T) string {
	t.Helper()
	return testkit.Run(t, "nft", "-a", "list", "table", "inet", "northbound")
}

// The real kernel: every kind of entry is read as it is written, and each
// change touches just what differs: rules and sets keep their handles.
func TestServicePorts(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	masquerade := hostplan.Masquerade{V4: netip.MustParsePrefix("10.1.0.0/24"), Except: "m0"}
	converge(t, k, masquerade, servicePorts(t))
	all := everyEntry()
	converge(t, k, masquerade, servicePorts(t, all...))
	before := ruleset(t)

	more := append(slices.Clone(all), "serve TCP 0.0.0.0:30443 to 10.96.0.11:443")
	messages := changedElements(t, func() {
		changes := converge(t, k, masquerade, servicePorts(t, more...))
		if len(changes) != 1 || changes[0].String() != "service-ports + serve TCP 0.0.0.0:30443 to 10.96.0.11:443" {
			t.Errorf("changes %v", changes)
		}
	})
	if messages != 1 {
		t.Errorf("a new node port is %d changes of elements, want 1", messages)
	}
	elsewhere := slices.Clone(all)
	elsewhere[0] = "serve TCP 0.0.0.0:30080 to 10.96.0.99:80"
	changes := converge(t, k, masquerade, servicePorts(t, elsewhere...))
	if want := "service-ports - serve TCP 0.0.0.0:30443 to 10.96.0.11:443, " +
		"~ serve TCP 0.0.0.0:30080 to 10.96.0.99:80 (was: serve TCP 0.0.0.0:30080 to 10.96.0.10:80)"; len(changes) != 1 ||
		changes[0].String() != want {
		t.Errorf("changes %v, want %s", changes, want)
	}
	converge(t, k, masquerade, servicePorts(t, all...))
	if after := ruleset(t); after != before {
		t.Errorf("the table has become\n%s\nit was\n%s", after, before)
	}
	// The masquerade made anew leaves the services alone, and the other way around.
	masquerade.V4 = netip.MustParsePrefix("10.2.0.0/24")
	if changes := converge(t, k, masquerade, servicePorts(t, all...)); len(changes) != 1 {
		t.Errorf("another masquerade changes %v", changes)
	}
	other := servicePorts(t, all...)
	other.Link = "m1"
	if changes := converge(t, k, masquerade, other); len(changes) != 1 {
		t.Errorf("another link changes %v", changes)
	}
	if err := k.Apply(item.Change{Have: other}); err != nil {
		t.Fatal(err)
	}
	if left := ruleset(t); strings.Contains(left, "service") || strings.Contains(left, "set ") || !strings.Contains(left,
		"10.2.0.0/24") {
		t.Errorf("without service ports the table is\n%s", left)
	}
	if err := k.Apply(item.Change{Have: masquerade}); err != nil {
		t.Fatal(err)
	}
	if tables := testkit.Run(t, "nft", "list", "tables"); strings.TrimSpace(tables) != "" {
		t.Errorf("tables are left: %s", tables)
	}
}

// changedElements counts the elements of sets and maps that do changes: for each
// the kernel sends a message, in order, and for a table that is made afterwards.
func changedElements(t *testing.T, do func()) (n int) {
	t.Helper()
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	do()
	testkit.Run(t, "nft", "add table ip afterwards; delete table ip afterwards")
	for {
		messages, _, err := socket.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWSETELEM, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELSETELEM:
				n++
			case unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE:
				return n
			}
		}
	}
}

// What hands do to the table is found, and made good.
func TestServicePortsRepaired(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	masquerade := hostplan.Masquerade{V4: netip.MustParsePrefix("10.1.0.0/24"), Except: "m0"}
	want := servicePorts(t, everyEntry()...)
	for _, damage := range []string{
		"flush ruleset", "flush table inet northbound", "delete table inet northbound",
		"flush map inet northbound serve-ports4", "delete element inet northbound serve-ports4 { tcp . 30080 }",
		"delete element inet northbound serve-ports4 { tcp . 30080 }; add element inet northbound serve-ports4 { tcp . " +
			"30080 : 10.96.0.66 . 80 }",
		"add element inet northbound share-ports4 { udp . 30080 . 3 : 10.1.0.66 . 8080 }",
		"flush map inet northbound stick-addrs4",
		"add element inet northbound serve-ports4 { icmp . 30080 : 10.96.0.66 . 80 }",
		"add element inet northbound allow-addrs4 { 192.0.2.7 . tcp . 80 . 172.16.0.3-172.16.0.77 }",
		"add element inet northbound allow-addrs4 { 192.0.2.7 . tcp . 80-90 . 172.16.0.0/16 }",
		"flush chain inet northbound service-in", "insert rule inet northbound service-in accept",
		"add rule inet northbound service-masq accept",
		"add chain inet northbound foreign; add rule inet northbound foreign jump service-foreign",
		"add chain inet northbound foreign; add rule inet northbound foreign accept",
		"flush chain inet northbound service-out; delete chain inet northbound service-out",
		"chain inet northbound service-in { policy drop; }", "chain inet northbound postrouting { policy drop; }",
		"flush set inet northbound limit-addrs6", "flush chain inet northbound postrouting",
	} {
		converge(t, k, masquerade, want)
		if strings.Contains(damage, "service-foreign") {
			damage = "add chain inet northbound service-foreign; " + damage
		}
		testkit.Run(t, "nft", damage)
		if changes := converge(t, k, masquerade, want); len(changes) == 0 {
			t.Errorf("%s: nobody minds", damage)
		}
	}
}

// converged holds that there is nothing to do.
func converged(t *testing.T, k *Tables, want ...hostplan.Item) {
	t.Helper()
	if again, err := item.Converge(t.Context(), k, want); err != nil || len(again) != 0 {
		t.Fatalf("a second time: %v, %v; want nothing", again, err)
	}
}

// A UDP flow that began before its place was served is forgotten, so that its
// next packet is; other flows stay.
func TestStaleFlows(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	testkit.Run(t, "sh", "-ec", "ip link add d0 type veth peer name d1; ip link set d1 up; ip link set d0 up; "+
		"ip addr add 198.51.100.1/24 dev d0; ip addr add 2001:db8::1/64 dev d0 nodad")
	converge(t, k, servicePorts(t))
	for _, to := range []string{"198.51.100.1:30080", "[2001:db8::1]:30080", "198.51.100.1:30999"} {
		conn, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
	}
	flows := func() map[string]int {
		out := map[string]int{}
		for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
			list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				out[net.JoinHostPort(f.Forward.DstIP.String(), fmt.Sprint(f.Forward.DstPort))]++
			}
		}
		return out
	}
	if got := flows(); got["198.51.100.1:30080"] != 1 || got["[2001:db8::1]:30080"] != 1 ||
		got["198.51.100.1:30999"] != 1 {
		t.Fatalf("flows %v, want all three", got)
	}
	converge(t, k, servicePorts(t, "serve UDP 0.0.0.0:30080 to 10.96.0.10:53", "serve TCP 0.0.0.0:30999 to 10.96.0.10:53"))
	if got := flows(); got["198.51.100.1:30080"] != 0 || got["[2001:db8::1]:30080"] != 1 ||
		got["198.51.100.1:30999"] != 1 {
		t.Errorf("flows %v, want the two that nothing was changed for", got)
	}
	converge(t, k, servicePorts(t, "serve UDP [2001:db8::1]:30080 to [fd02::10]:53"))
	if got := flows(); got["[2001:db8::1]:30080"] != 0 || got["198.51.100.1:30999"] != 1 {
		t.Errorf("flows %v, want the one that nothing was changed for", got)
	}
}

// After a change of its own nothing is read again, unless somebody else has
// changed something meanwhile.
func TestServicePortsRemembered(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	entries := everyEntry()
	converge(t, k, servicePorts(t))
	converge(t, k, servicePorts(t, entries[0]))
	for i := range entries {
		want := servicePorts(t, entries[:i+1]...)
		if i%2 == 1 {
			testkit.Run(t, "nft", "flush map inet northbound serve-ports4")
		}
		if _, err := item.Converge(t.Context(), k, []hostplan.Item{want}); err != nil {
			t.Fatal(err)
		}
		generation, err := ruleGeneration()
		if err != nil {
			t.Fatal(err)
		}
		if k.services.generation != generation || len(k.services.items) != 1 || k.services.items[0] != hostplan.Item(want) {
			t.Errorf("after %d entries generation %d with %v is remembered, it is %d with %v", i+1, k.services.generation,
				k.services.items, generation, want)
		}
	}
	// Somebody is quicker than the change.
	have, err := k.Read([]hostplan.Item{servicePorts(t)})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "nft", "flush map inet northbound local-ports4")
	less := servicePorts(t, entries[1:]...)
	if err := k.Apply(item.Change{Have: have[0], Want: less}); err != nil {
		t.Fatal(err)
	}
	if changes := converge(t, k, less); len(changes) != 1 {
		t.Errorf("changes %v, want that of what somebody removed", changes)
	}
}
