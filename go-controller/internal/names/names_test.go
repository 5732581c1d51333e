package names_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The names that operators' scripts and the classic walkthrough rely on.
func TestClassicNames(t *testing.T) {
	for got, want := range map[string]string{
		names.Own.NodeSwitch("n1"):                                     "n1",
		names.RouterToSwitch("n1"):                                     "rtos-n1",
		names.SwitchToRouter("n1"):                                     "stor-n1",
		names.ManagementPort("n1"):                                     "k8s-n1",
		names.RouterToJoin("GR_n1"):                                    "rtoj-GR_n1",
		names.JoinToRouter("GR_n1"):                                    "jtor-GR_n1",
		names.GatewayRouter("n1"):                                      "GR_n1",
		names.ExternalSwitch("n1"):                                     "ext_n1",
		names.RouterToExternal("n1"):                                   "rtoe-GR_n1",
		names.ExternalToRouter("n1"):                                   "etor-GR_n1",
		names.LocalnetPort("breth0", "n1"):                             "breth0_n1",
		names.Own.LogicalPort("default", "web-0", ""):                  "default_web-0",
		names.LoadBalancer("default", "web", "TCP", ""):                "Service_default/web_TCP",
		names.LoadBalancer("default", "web", "UDP", "zone-a"):          "Service_default/web_UDP_zone-a",
		names.ZoneLBGroup("a"):                                         "zoneLBGroup_a",
		names.ZoneLBGroup(""):                                          "zoneLBGroup_-",
		names.NamespaceAddressSet("a-b", names.IPv4):                   "ns_a_b_v4",
		names.NamespaceAddressSet("web", names.IPv6):                   "ns_web_v6",
		names.FamilyRole(names.RoleEgress, "v4"):                       "egress-v4",
		names.ManagementInterface("n1"):                                "k8s-n1",
		names.ManagementInterface("node-with-a-long-name.example.com"): "k8s-node-with-a",
		names.HostVeth("0123456789abcdef0123"):                         "0123456789abcde",
		names.HostVeth("short"):                                        "short",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// OVN's expression parser takes letters, digits, '_' and '.' in $name, the
// first no digit (ovn-sb(5), "Symbols"), and namespaces of 63 characters exist.
func TestAddressSetNamesAreValidAndDiffer(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z_.][A-Za-z0-9_.]*$`)
	seen := map[string]string{}
	for _, ns := range []string{
		"default", "a-b", "a--b", "0", "1-2", "ab", strings.Repeat("x", 63), strings.Repeat("9-", 31) + "9",
	} {
		for _, f := range []names.Family{names.IPv4, names.IPv6} {
			n := names.NamespaceAddressSet(ns, f)
			if !valid.MatchString(n) {
				t.Errorf("address set of %s: %q is not a name that OVN takes", ns, n)
			}
			if other, dup := seen[n]; dup {
				t.Errorf("%s and %s share the address set name %s", ns, other, n)
			}
			seen[n] = ns
		}
	}
}

// Pods' connections must not have ports that are the node's own business:
// Geneve (RFC 8926), VXLAN (RFC 7348), node ports, and what Linux gives out.
func TestSNATPorts(t *testing.T) {
	var first, last int
	if n, err := fmt.Sscanf(names.SNATPorts, "%d-%d", &first, &last); n != 2 || err != nil {
		t.Fatalf("%q: %v", names.SNATPorts, err)
	}
	if first != names.FirstSNATPort || last != names.LastSNATPort {
		t.Errorf("%s, but the ends are %d and %d", names.SNATPorts, names.FirstSNATPort, names.LastSNATPort)
	}
	for _, own := range []int{4789, 6081, 30000, 32768} {
		if first <= own && own <= last {
			t.Errorf("%s has port %d in it", names.SNATPorts, own)
		}
	}
	if last-first < 16000 {
		t.Errorf("%s: %d ports are few", names.SNATPorts, last-first+1)
	}
}

func TestRowUUID(t *testing.T) {
	base := names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", names.RolePort, "uid-1")
	if u, err := uuid.Parse(base); err != nil || u.Version() != 5 || u.Variant() != uuid.RFC4122 {
		t.Fatalf("%s is not a version 5 UUID: %v", base, err)
	}
	if !names.IsRowUUID(base) || names.IsRowUUID("0b0d6b8e-1fb4-4b53-9d8e-6f6cf2a5f6d1") || names.IsRowUUID("") {
		t.Error("IsRowUUID: want true for a derived UUID only")
	}
	again := names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", names.RolePort, "uid-1")
	if again != base {
		t.Errorf("the same row has UUIDs %s and %s", base, again)
	}
	all := []string{
		base,
		names.RowUUID("Logical_Switch", names.KindPod, "default/web-0", names.RolePort, "uid-1"),
		names.RowUUID("Logical_Switch_Port", names.KindService, "default/web-0", names.RolePort, "uid-1"),
		names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-1", names.RolePort, "uid-1"),
		names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", names.RoleSwitch, "uid-1"),
		names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", names.RolePort, "uid-2"),
		names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", names.RolePort+"uid-1", ""),
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 7 {
		t.Errorf("%d different UUIDs of 7 different rows", n)
	}
}

// The UUIDs are an on-disk format: a change of the derivation would re-create
// every row of every cluster at an upgrade.
func TestRowUUIDIsPinned(t *testing.T) {
	for got, want := range map[string]string{
		names.ClusterRow("Logical_Router", names.RoleRouter):           "361d5832-3cba-55e0-986a-dcedd83d75f9",
		names.NodeRow("Logical_Switch", "n1", names.RoleSwitch, "u-1"): "de50dc95-c33a-50d6-8ca6-45aed1871ce5",
	} {
		if got != want {
			t.Errorf("UUID %s, want %s", got, want)
		}
	}
}

func TestKindsListsEveryKindOnce(t *testing.T) {
	want := []names.Kind{
		names.KindCluster, names.KindZone, names.KindNode, names.KindGateway, names.KindExit,
		names.KindNamespace, names.KindTenant, names.KindIsolation, names.KindNetworkIsolation,
		names.KindSelector, names.KindPolicy, names.KindClusterPolicy,
		names.KindMultiPolicy, names.KindPod, names.KindService,
	}
	if got := names.Kinds(); !slices.Equal(got, want) {
		t.Errorf("Kinds() = %v, want %v", got, want)
	}
}

// Load_Balancer_Groups of networks tell by their names whose they are.
func TestLBGroupOwner(t *testing.T) {
	for name, want := range map[string]string{
		names.LBGroup(names.ClusterOwner):                            "Cluster cluster",
		names.LBGroup(names.Defined("a", "b").Owner("cluster")):      "Cluster a.b/cluster",
		names.LBGroup(names.Defined("a", "b").Owner("user-defined")): "Cluster a.b/user-defined",
		names.ZoneLBGroup("a_clusterLBGroup"):                        "Zone a_clusterLBGroup",
		names.ExitLBGroup:                                            "Exit cluster",
		names.ExitsLBGroup(names.Defined("", "b").Owner("cluster")):  "Cluster .b/cluster exits-",
		"a.b_nodeLBGroup":                                            "",
		"mineLBGroup":                                                "",
		"a.b_cluster":                                                "",
	} {
		kind, owner, role, ok := names.LBGroupOwner(name)
		got := string(kind) + " " + owner
		if role == names.RoleExitsLBGroup {
			got += " exits-"
		}
		if ok != (want != "") || ok && got != want {
			t.Errorf("owner of %s: %s, %t, want %q", name, got, ok, want)
		}
	}
}
