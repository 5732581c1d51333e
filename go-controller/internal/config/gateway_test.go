package config

import (
	"net/netip"
	"strings"
	"testing"
)

func TestGatewayValidate(t *testing.T) {
	good := Gateway{Mode: "shared", Interface: "breth0", VLAN: 100,
		NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1"), netip.MustParseAddr("fd18::1")}}
	for _, g := range []Gateway{{}, good} {
		if err := g.Validate(); err != nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
	for want, g := range map[string]Gateway{
		`--gateway-mode "local": want "shared"`:      {Mode: "local", Interface: "eth0"},
		"--gateway-interface: the NIC":               {Mode: "shared"},
		"--gateway-interface: needs --gateway-mode":  {Interface: "eth0"},
		"--gateway-nexthop: needs --gateway-mode":    {NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1")}},
		"--gateway-vlan-id: needs --gateway-mode":    {VLAN: 7},
		"--rampout-ip-subnets: needs --gateway-mode": {Rampout: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
		"--gateway-node-label: needs --gateway-mode": {NodeLabel: anyNode{}},
		"--gateway-vlan-id 4095: want 1 to 4094":     {Mode: "shared", Interface: "eth0", VLAN: 4095},
		"--gateway-vlan-id -1: want 1 to 4094":       {Mode: "shared", Interface: "eth0", VLAN: -1},
		"--gateway-nexthop 172.18.0.2: want at most": {Mode: "shared", Interface: "eth0",
			NextHops: []netip.Addr{netip.MustParseAddr("172.18.0.1"), netip.MustParseAddr("172.18.0.2")}},
		"--gateway-nexthop ::1: want at most one": {Mode: "shared", Interface: "eth0",
			NextHops: []netip.Addr{netip.MustParseAddr("::1")}},
		"--gateway-nexthop 0.0.0.0: want at most one ": {Mode: "shared", Interface: "eth0",
			NextHops: []netip.Addr{netip.IPv4Unspecified()}},
	} {
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", g, err, want)
		}
	}
}

// anyNode accepts all nodes.
type anyNode struct{}

func (anyNode) String() string                 { return "" }
func (anyNode) Accepts(map[string]string) bool { return true }
