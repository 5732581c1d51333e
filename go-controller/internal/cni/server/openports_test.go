package server

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// A pod of a primary network may have routes to other pods in the cluster's own, and no others.
func TestRoutesOfOpenPorts(t *testing.T) {
	for _, c := range []struct {
		dest, hop, refused string
		unlocked           bool
	}{
		{dest: "10.244.0.0/16", hop: "10.244.1.1"},
		{dest: "fd01::/48", hop: "fd01:0:0:1::1"},
		{dest: "0.0.0.0/0", hop: "10.244.1.1", refused: "routes: dest 0.0.0.0/0, nextHop 10.244.1.1: want a range of pods"},
		{dest: "128.0.0.0/1", hop: "10.244.1.1", refused: "want a range of pods"},
		{dest: "10.244.0.0/16", hop: "fd01:0:0:1::1", refused: "want a range of pods"},
		{dest: "10.244.0.9/16", hop: "10.244.1.1", refused: "want a range of pods"},
		{dest: "10.244.0.0/16", hop: "10.244.1.2", refused: "the router in one of the node's subnets"},
		{dest: "10.244.0.0/16", hop: "10.244.1.1", unlocked: true, refused: "no routes and no mtu"},
	} {
		p := annotated("p", 5, 5)
		own := subnet.Attachment(dualStack(), []uint64{5, 5}, "")
		own.Routes = []annotation.Route{{Dest: netip.MustParsePrefix(c.dest), NextHop: netip.MustParseAddr(c.hop)}}
		all := map[string]annotation.PodNetwork{"default": own}
		if !c.unlocked {
			primary := network("10.77.0.5/16")
			primary.Gateways = []netip.Addr{netip.MustParseAddr("10.77.0.1")}
			own.Gateways = nil
			all = map[string]annotation.PodNetwork{"default": own, "red.own/ovn-udn1": primary}
		}
		p.Network = annotation.MarshalAttachments(all)
		s := &Server{Node: dualStack(), Pods: fakePods{p}}
		_, err := s.networksOf(t.Context(), eth0(), p)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("dest %s, nextHop %s: error %v, want %q", c.dest, c.hop, err, c.refused)
		}
	}
}
