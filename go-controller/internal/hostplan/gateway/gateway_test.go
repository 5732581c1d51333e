package gateway_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// input is a *.in.yaml: the flags and the facts.
type input struct {
	Mode, NextHop, BridgeMappings, EncapType string
	VLAN                                     int

	External *struct {
		Userspace                       bool
		UplinkPort, PatchPort, LocalTag int
		MTU                             int
		Addrs, NextHops                 []string
	}
	Exit hostplan.GatewayRecord
}

func (in input) parse(t *testing.T) (hostplan.Facts, config.Node) {
	t.Helper()
	c := config.DefaultNode()
	c.Name, c.Gateway.Mode, c.Gateway.VLAN = "n1", in.Mode, in.VLAN
	if in.EncapType != "" {
		c.EncapType = in.EncapType
	}
	var err error
	if c.BridgeMappings, err = config.ParseBridgeMappings(in.BridgeMappings); err != nil {
		t.Fatal(err)
	}
	if c.Gateway.NextHops, err = config.ParseAddrs("--gateway-nexthop", in.NextHop); err != nil {
		t.Fatal(err)
	}
	f := hostplan.Facts{Gateway: in.Exit}
	if e := in.External; e != nil {
		x := hostplan.External{
			Bridge: "breth0", Userspace: e.Userspace, Uplink: "eth0", UplinkPort: e.UplinkPort,
			Patch:     "patch-breth0_n1-to-br-int",
			PatchPort: e.PatchPort, MTU: e.MTU, VLAN: in.VLAN, LocalTag: e.LocalTag, Link: "breth0",
			MAC: ipnet.MAC{0x02, 0x42, 0xac, 0x12, 0, 2},
		}
		for _, a := range e.Addrs {
			x.Addrs = append(x.Addrs, netip.MustParsePrefix(a))
		}
		for _, a := range e.NextHops {
			x.NextHops = append(x.NextHops, netip.MustParseAddr(a))
		}
		f.External = &x
	}
	return f, c
}

// Each testdata/NAME.in.yaml gives NAME.out.txt: the plan, and what the cluster
// is told.
func TestPlans(t *testing.T) {
	testkit.Golden(t, "testdata", 12, func(t *testing.T, raw []byte) string {
		var in input
		if err := yaml.UnmarshalStrict(raw, &in); err != nil {
			t.Fatal(err)
		}
		return output(in.parse(t))
	})
}

func output(f hostplan.Facts, c config.Node) string {
	plan, err := gateway.Plan(f, c)
	out := plan.String()
	if err != nil {
		out += "error: " + err.Error() + "\n"
	}
	if f.External == nil {
		return out
	}
	network, err := gateway.PlannedNetwork(f, c)
	if err != nil {
		return out
	}
	l3, err := gateway.L3(*f.External, c.Name, network, c.Gateway)
	if err != nil {
		return out + "error: " + err.Error() + "\n"
	}
	return out + annotation.MarshalL3Gateway(l3) + "\n"
}

// Taking back a plan leaves what was there before it.
func TestUndoIsTheInverse(t *testing.T) {
	for _, before := range []string{"", "physnet:br-phys", "a:br-a,b:breth0"} {
		f, c := input{Mode: "shared"}.parse(t)
		f.External = &hostplan.External{Bridge: "breth0", Uplink: "eth0", UplinkPort: 1, Link: "breth0"}
		f.Gateway.Mappings = before
		plan, err := gateway.Plan(f, c)
		if err != nil {
			t.Fatal(err)
		}
		ids := plan.OVS.ExternalIDs
		f.Gateway = hostplan.GatewayRecord{Mappings: ids["ovn-bridge-mappings"], Bridge: ids["northbound-gateway-bridge"],
			Added: ids["northbound-gateway-mapping"], Release: true}
		c.Gateway.Mode = ""
		plan, err = gateway.Plan(f, c)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"ovn-bridge-mappings": before, "northbound-gateway-bridge": "",
			"northbound-gateway-mapping": ""}
		if got := fmt.Sprint(plan.OVS.ExternalIDs); got != fmt.Sprint(want) || len(plan.Flows) != 1 ||
			len(plan.Flows[0].List) != 0 {
			t.Errorf("of %q the undoing is %s %v, want %v and no flows", before, got, plan.Flows, want)
		}
	}
}

// No two flows are the same to OpenFlow, and every frame from the NIC for the
// shared MAC, every one from the gateway router, and every other one meets a
// flow.
func TestFlowsAreDistinct(t *testing.T) {
	mac, err := net.ParseMAC("02:42:ac:12:00:02")
	if err != nil {
		t.Fatal(err)
	}
	e := hostplan.External{Bridge: "breth0", UplinkPort: 1, PatchPort: 2, MAC: ipnet.MAC(mac)}
	seen, catches := map[string]bool{}, 0
	guard := hostplan.AntiSpoof{Inside: "10.244.0.0/16,fd00:10:244::/48", Join: "100.64.1.0/24,fd98::/64"}
	databases := hostplan.DatabaseDrop{Servers: "192.0.2.1,2001:db8::1", Ports: "6641-6644,16642-16642"}
	flows := gateway.Flows(e, "geneve", guard, databases)
	for _, f := range flows.List {
		if seen[f.Key()] {
			t.Errorf("%s is there twice", f)
		}
		seen[f.Key()] = true
		switch f.Match {
		case "in_port=1,vlan_tci=0x0000/0x1fff,dl_dst=02:42:ac:12:00:02", "in_port=2":
			catches++
		case "":
			if f.Table == 0 && f.Priority > 0 && f.Actions == "NORMAL" {
				catches++
			}
		}
	}
	if len(flows.List) != 40 || catches != 3 {
		t.Errorf("%d flows of which %d catch the rest, want 40 and 3", len(flows.List), catches)
	}
}
