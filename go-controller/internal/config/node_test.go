package config

import (
	"net/netip"
	"strings"
	"testing"
)

func TestDefaultNode(t *testing.T) {
	n := DefaultNode()
	if err := n.Validate(); err == nil ||
		err.Error() != "--node-name: the name of this machine's Kubernetes Node is needed" {
		t.Errorf("the default lacks only a name: %v", err)
	}
	n.Name = "n1"
	if err := n.Validate(); err != nil {
		t.Errorf("the default with a name: %v", err)
	}
	if got := n.CNISocket(); got != "/run/ovn-kubernetes/cni/ovn-cni-server.sock" {
		t.Errorf("socket %s", got)
	}
}

func TestNodeValidate(t *testing.T) {
	for want, change := range map[string]func(*Node){
		"--cluster-subnets: at least one":          func(n *Node) { n.ClusterSubnets = nil },
		`--encap-type "stt": want geneve or vxlan`: func(n *Node) { n.EncapType = "stt" },
		`--datapath-type "dpdk": want system`:      func(n *Node) { n.DatapathType = "dpdk" },
		"--mtu 500: want between 576 and 65535":    func(n *Node) { n.MTU = 500 },
		"--mtu 1279: want between 1280 and 65535": func(n *Node) {
			n.MTU = 1279
			n.ClusterSubnets[0].CIDR = netip.MustParsePrefix("fd01::/48")
		},
		"--mtu 70000": func(n *Node) { n.MTU = 70000 },
		"--encap-ip 127.0.0.1: want an address": func(n *Node) {
			n.EncapIPs = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		},
		"--encap-ip 10.0.0.2: given twice": func(n *Node) {
			n.EncapIPs,
				_ = ParseAddrs("--encap-ip", "10.0.0.2,fd00::2,10.0.0.2")
		},
		"--encap-ip fe80::1: want an address": func(n *Node) {
			n.EncapIPs = []netip.Addr{netip.MustParseAddr("fe80::1")}
		},
		`--ovs-address "/run/db.sock": want unix:PATH`: func(n *Node) { n.OVSAddress = "/run/db.sock" },
		`--sb-address "http://x": want unix:PATH, tcp:HOST:PORT or ssl:HOST`: func(n *Node) {
			n.SBAddress = "tcp:1.2.3.4:6642,http://x"
		},
		`--cni-conf-dir "etc": want an absolute path`: func(n *Node) { n.CNIConfDir = "etc" },
		`--cni-socket-dir "": want an absolute path`:  func(n *Node) { n.CNISocketDir = "" },
	} {
		n := DefaultNode()
		n.Name = "n1"
		change(&n)
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want only %q", err, want)
		}
	}
}

func TestParseNodeLists(t *testing.T) {
	addrs, err := ParseAddrs("--encap-ip", " 10.0.0.1, fd00::1,")
	if err != nil || len(addrs) != 2 || addrs[1] != netip.MustParseAddr("fd00::1") {
		t.Errorf("addresses %v %v", addrs, err)
	}
	for _, bad := range []string{"x", "10.0.0.1/24", "fe80::1%eth0", "::ffff:10.0.0.1"} {
		if _, err := ParseAddrs("--encap-ip", bad); err == nil || !strings.Contains(err.Error(), "--encap-ip") ||
			!strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	maps, err := ParseBridgeMappings("physnet:br-phys, other:br-o")
	if err != nil || len(maps) != 2 || maps[1].String() != "other:br-o" {
		t.Errorf("mappings %v %v", maps, err)
	}
	for _, bad := range []string{"physnet", ":br", "a:", "a:b:c", "a:b,a:c"} {
		if _, err := ParseBridgeMappings(bad); err == nil || !strings.Contains(err.Error(), "--bridge-mappings") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
