package server

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// A pod of a primary network has no gateways in the cluster's own, and those of its interface ovn-udn1.
func TestPrimaryAttachment(t *testing.T) {
	good := network("10.77.0.5/16", "fd77::5/64")
	good.Gateways = []netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("fd77::1")}
	change := func(f func(n *annotation.PodNetwork)) annotation.PodNetwork {
		n := good
		n.Gateways = slices.Clone(good.Gateways)
		f(&n)
		return n
	}
	for what, c := range map[string]struct {
		key      string
		net      annotation.PodNetwork
		unlocked bool
		refused  string
	}{
		"the master's":          {"red.own/ovn-udn1", good, false, ""},
		"both default routes":   {"red.own/ovn-udn1", good, true, `entry "default": mac_address`},
		"no default route":      {"red.own/ovn-udn1", network("10.77.0.5/16"), false, `entry "default": mac_address`},
		"another interface":     {"red.own/net1", good, true, "gateway_ips [10.77.0.1 fd77::1]: want none"},
		"another and no routes": {"red.own/net1", good, false, `entry "default": mac_address`},
		"a router elsewhere": {"red.own/ovn-udn1", change(func(n *annotation.PodNetwork) {
			n.Gateways[0] = netip.MustParseAddr("10.244.1.1")
		}), false, "gateway_ips: 10.244.1.1: want the router in the subnet of 10.77.0.5/16"},
		"the pod itself": {"red.own/ovn-udn1", change(func(n *annotation.PodNetwork) {
			n.Gateways[0] = netip.MustParseAddr("10.77.0.5")
		}), false, "want the router in the subnet"},
		"one too many": {"red.own/ovn-udn1", change(func(n *annotation.PodNetwork) {
			n.Gateways = append(n.Gateways, netip.MustParseAddr("10.77.0.2"))
		}), false, "want one for each of ip_addresses"},
		"a group's MAC": {"red.own/ovn-udn1", change(func(n *annotation.PodNetwork) { n.MAC[0] = 0x0b }), false,
			"want that of one host"},
	} {
		t.Run(what, func(t *testing.T) {
			p := annotated("p", 5, 5)
			own := subnet.Attachment(dualStack(), []uint64{5, 5}, "")
			if !c.unlocked {
				own.Gateways = nil
			}
			p.Network = annotation.MarshalAttachments(map[string]annotation.PodNetwork{"default": own, c.key: c.net})
			s := &Server{Node: dualStack(), Pods: fakePods{p}}
			_, err := s.networksOf(t.Context(), eth0(), p)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}
