package names_test

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The record of freed addresses tells networks apart. Keys that are none are not understood.
func TestFreedKey(t *testing.T) {
	for key, want := range map[string]names.Range{
		"10.128.1.7":              {names.Own, netip.MustParsePrefix("10.128.1.7/32")},
		"10.128.1.0/24":           {names.Own, netip.MustParsePrefix("10.128.1.0/24")},
		"fd77::7@red.own":         {"red.own", netip.MustParsePrefix("fd77::7/128")},
		"fd77:0:0:1::/64@.shared": {".shared", netip.MustParsePrefix("fd77:0:0:1::/64")},
	} {
		if got, ok := names.FreedRange(key); !ok || got != want || got.FreedKey() != key {
			t.Errorf("%s: %v, %v, key %s", key, got, ok, got.FreedKey())
		}
	}
	for _, key := range []string{"", "x", "10.128.1.7@", "10.128.1.7@default", "@red.own",
		"10.128.1.7/40@red.own"} {
		if got, ok := names.FreedRange(key); ok {
			t.Errorf("%q is understood as %v", key, got)
		}
	}
}

// The names of another network have its name in them, those of the cluster's own network have not.
func TestNamesOfNetworks(t *testing.T) {
	const blue names.Network = "blue"
	for _, c := range []struct{ own, ownWant, other, otherWant string }{
		{names.Own.NodeSwitch("n1"), "n1", blue.NodeSwitch("n1"), "blue_n1"},
		{names.Own.JoinSwitch(), "join", blue.JoinSwitch(), "blue_join"},
		{names.Own.Router("r"), "r", blue.Router("r"), "blue_r"},
		{names.Own.Owner("n1"), "n1", blue.Owner("n1"), "blue/n1"},
		{names.Own.Message("text"), "text", blue.Message("text"), "blue: text"},
		{names.Own.LogicalPort("ns", "p", ""), "ns_p", blue.LogicalPort("ns", "p", "net1"), "blue_ns_p_net1"},
		{names.Own.PortRole(""), "port", blue.PortRole("net1"), "port-blue/net1"},
	} {
		if c.own != c.ownWant || c.other != c.otherWant {
			t.Errorf("%q and %q, want %q and %q", c.own, c.other, c.ownWant, c.otherWant)
		}
	}
	for key, want := range map[string][2]string{"default": {"default", ""}, "blue/net1": {"blue", "net1"}} {
		n, iface := names.EntryOf(key)
		if string(n) != want[0] || iface != want[1] || n.Entry(iface) != key {
			t.Errorf("entry %q: network %q, interface %q", key, n, iface)
		}
	}
	for role, want := range map[string]string{"port": "default", "port-team.blue/net1": "team.blue/net1", "port-blue": "",
		"switch": ""} {
		n, iface, ok := names.PortOf(role)
		if ok != (want != "") || ok && (n.Entry(iface) != want || n.PortRole(iface) != role) {
			t.Errorf("role %q: network %q, interface %q, %v", role, n, iface, ok)
		}
	}
	const container = "0123456789abcdef0123"
	first := names.HostVeth(names.AttachmentID(container, "net1"))
	second := names.HostVeth(names.AttachmentID(container, "net2"))
	if got := names.HostVeth(names.AttachmentID(container, "")); got != "0123456789abcde" || first == second ||
		len(first) != 15 || !strings.HasPrefix(first, "01234567_") || names.HostVeth(first) != first {
		t.Errorf("host veths %s, %s and %s", got, first, second)
	}
	for id, want := range map[string]string{container: container, container + "/net1": container} {
		if got := names.ContainerOf(id); got != want || !names.MayBeVethOf(container, names.HostVeth(id)) ||
			names.MayBeVethOf("1"+container, names.HostVeth(id)) {
			t.Errorf("attachment %s: of container %s, want %s", id, got, want)
		}
	}
	for iface, own := range map[string]bool{"": true, "net1": false} {
		if names.Own.CanHave(iface) != own || blue.CanHave(iface) == own {
			t.Errorf("interface %q: own %v, blue %v", iface, names.Own.CanHave(iface), blue.CanHave(iface))
		}
	}
	for _, n := range []names.Network{names.Own, blue, "team.blue"} {
		if got, name := names.NetworkOf(n.Owner("n1.example.com")); got != n || name != "n1.example.com" {
			t.Errorf("the owner of %s: network %q, name %q", n, got, name)
		}
	}
}

// The name of a network is what Kubernetes takes for a DNS subdomain. Without "_" and "/" no name in OVN collides.
func TestValidNetworks(t *testing.T) {
	long := func(n int) names.Network { return names.Network(strings.Repeat("a", n)) }
	for _, name := range []names.Network{"", "a", "blue", "shop.blue", "a-b.c-1", "1.2", "a_b", "a/b", "A", "é", "-a",
		"a-", "a..b", ".a", "a.", "a.-b", "a b", "a\n", long(63), long(64), long(253), long(254)} {
		if want := len(validation.IsDNS1123Subdomain(string(name))) == 0; name.Valid() != want {
			t.Errorf("%q: valid %v, want %v", name, name.Valid(), want)
		}
	}
}

// Only package names asks whether a network is the cluster's own: all other code asks for a property of the value.
func TestOnlyNamesAsksForTheOwnNetwork(t *testing.T) {
	question := regexp.MustCompile(`[!=]= *(string\()?names\.Own\b|\bnames\.Own\)? *[!=]=|case .*\bnames\.Own\b.*:$`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if question.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		files++
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files read: %v", files, err)
	}
}
