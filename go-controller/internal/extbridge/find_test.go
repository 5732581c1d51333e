package extbridge

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// world is a Switch and a Kernel: bridges by name, and the devices that there
// are.
type world struct {
	bridges map[string][]ovs.BridgePort
	bonded  map[string]string // members of bonds, to their bridges
	devices []string
	vlans   map[int]string // on breth0
}

func (w world) Bridge(name string) (ovs.BridgeState, bool) {
	ports, ok := w.bridges[name]
	return ovs.BridgeState{Name: name, Userspace: true, Ports: ports}, ok
}

func (w world) BridgeOf(iface string) (string, bool) {
	for name, ports := range w.bridges {
		if _, ok := (ovs.BridgeState{Ports: ports}).Port(iface); ok {
			return name, true
		}
	}
	b, ok := w.bonded[iface]
	return b, ok
}

func (w world) Device(name string) (hostnet.Device, bool, error) {
	d := hostnet.Device{
		Name: name, Carrier: true, MAC: ipnet.MAC{2, 0, 0, 0, 0, 1},
		Addrs:    []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16")},
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")},
	}
	return d, slices.Contains(w.devices, name), nil
}

func (w world) VLANDevice(_ string, id int) (string, bool, error) {
	name, ok := w.vlans[id]
	return name, ok, nil
}

func ports(extra ...ovs.BridgePort) []ovs.BridgePort {
	return append([]ovs.BridgePort{{Name: "breth0", Type: "internal", Ofport: 65534}, {Name: "eth0", Ofport: 1}}, extra...)
}

func TestFind(t *testing.T) {
	patch := ovs.BridgePort{Name: "patch-breth0_n1-to-br-int", Type: "patch", Ofport: 2}
	other := ovs.BridgePort{Name: "patch-breth0_n2-to-br-int", Type: "patch", Ofport: 3}
	local := ovs.BridgePort{Name: "breth0", Type: "internal", Tag: 9}
	const found = "breth0 eth0 1 patch-breth0_n1-to-br-int 2 breth0 [172.18.0.2/16] [172.18.0.1]"
	for _, c := range []struct {
		name  string
		ports []ovs.BridgePort
		query Query
		want  string
	}{
		{"by NIC", ports(patch), Query{Interface: "eth0", Node: "n1"}, found},
		{"by bridge", ports(patch), Query{Interface: "breth0", Node: "n1"}, found},
		{"by both", ports(patch), Query{Interface: "eth0", Bridge: "breth0"}, found},
		{"another's patch port", ports(other), Query{Interface: "eth0", Node: "n1"},
			strings.Replace(found, "int 2", "int 0", 1)},
		{"no patch port", ports(), Query{Interface: "eth0"}, strings.Replace(found, "patch-breth0_n1-to-br-int 2", " 0", 1)},
		{"two patch ports", ports(patch, other), Query{Interface: "eth0"},
			"bridge breth0 has the patch ports of several gateways: patch-breth0_n1-to-br-int, patch-breth0_n2-to-br-int"},
		{"wrong bridge", ports(), Query{Interface: "eth0", Bridge: "breth1"},
			"interface eth0 is on bridge breth0, not on breth1"},
		{"two NICs", ports(ovs.BridgePort{Name: "eth1"}), Query{Interface: "breth0"},
			"bridge breth0 has eth0, eth1: say which is the NIC that leads outside"},
		{"no NIC", []ovs.BridgePort{local}, Query{Interface: "breth0"},
			"bridge breth0 has no NIC: run `ovnkube nics-to-bridge`, or `ovs-vsctl add-port breth0 NIC`"},
		{"a bond's member", ports(ovs.BridgePort{Name: "bond0", Bond: true}), Query{Interface: "eth7"},
			"interface eth7 is in a bond of Open vSwitch on bridge breth0"},
		{"a bond", []ovs.BridgePort{local, {Name: "bond0", Bond: true}}, Query{Interface: "breth0"},
			"interface bond0 is in a bond of Open vSwitch on bridge breth0"},
		{"a tagged NIC", []ovs.BridgePort{local, {Name: "eth0", Tag: 5}}, Query{Interface: "eth0"},
			"port eth0 has tag=5: take it off; for a gateway in that VLAN give --gateway-vlan-id 5"},
		{"not in a bridge", ports(), Query{Interface: "eth5"}, "interface eth5 is not in a bridge: " +
			"run `ovnkube nics-to-bridge eth5`"},
		{"nowhere", ports(), Query{Interface: "eth6"}, "there is no interface or bridge eth6 on this host"},
		{"a VLAN device", ports(patch), Query{Interface: "eth0", Node: "n1", VLAN: 100},
			strings.Replace(found, "2 breth0", "2 breth0.100", 1)},
		{"no VLAN device", ports(patch), Query{Interface: "eth0", VLAN: 101},
			"the host is not in VLAN 101: neither has port breth0 tag=101, nor is there a VLAN device with that id on breth0"},
		{"an access port", []ovs.BridgePort{local, {Name: "eth0", Ofport: 1}, patch},
			Query{Interface: "eth0", Node: "n1", VLAN: 9}, found},
	} {
		w := world{map[string][]ovs.BridgePort{"breth0": c.ports}, map[string]string{"eth7": "breth0"},
			[]string{"breth0", "eth5", "breth0.100"}, map[int]string{100: "breth0.100"}}
		e, err := Find(w, w, c.query)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(e.Bridge, " ", e.Uplink, " ", e.UplinkPort, " ", e.Patch, " ", e.PatchPort, " ", e.Link, " ",
				e.Addrs, " ", e.NextHops)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if _, err := Find(world{bridges: map[string][]ovs.BridgePort{"breth0": ports()}}, world{},
		Query{Interface: "breth0"}); err == nil || !strings.Contains(err.Error(), "interface breth0 does not exist") {
		t.Errorf("without the bridge's device: %v", err)
	}
}
