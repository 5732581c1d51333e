package server

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
)

// Which attachments a request is about: all, those that Multus does not ask for, or the one of its interface.
func TestAttachments(t *testing.T) {
	primary := network("10.77.0.5/16")
	primary.Gateways = []netip.Addr{netip.MustParseAddr("10.77.0.1")}
	value := annotation.MarshalAttachments(map[string]annotation.PodNetwork{
		"default": network("10.244.1.5/24"), "shop.own/ovn-udn1": primary, "shop.blue/net1": network("10.99.0.5/24"),
		"shop.lan/backend": network("10.98.0.5/24"),
	})
	for what, c := range map[string]struct {
		iface, config string
		oneByOne      bool
		want          string // keys
		refused       string
	}{
		"without Multus": {iface: "eth0", config: `{"type":"ovn_cni"}`,
			want: "default shop.lan/backend shop.blue/net1 shop.own/ovn-udn1"},
		"behind Multus": {iface: "eth0", config: `{"type":"ovn_cni"}`, oneByOne: true,
			want: "default shop.own/ovn-udn1"},
		"a definition": {iface: "net1", config: `{"type":"ovn-k8s-cni-overlay","name":"x"}`, want: "shop.blue/net1"},
		"a definition that says whose it is": {iface: "backend",
			config: `{"type":"ovn-k8s-cni-overlay","netAttachDefName":"shop/lan"}`, want: "shop.lan/backend"},
		"an interface that the pod has not": {iface: "net2", config: `{"type":"ovn-k8s-cni-overlay"}`,
			refused: `no entry for interface "net2"`},
		"eth0 of a definition": {iface: "eth0", config: `{"type":"ovn-k8s-cni-overlay"}`,
			refused: `no entry for interface "eth0"`},
	} {
		r := requestOf(protocol.Request{ContainerID: "c", IfName: c.iface, Config: []byte(c.config)})
		r.oneByOne = c.oneByOne
		list, err := r.attachments(value)
		var keys []string
		for _, a := range list {
			keys = append(keys, a.Key())
		}
		if c.refused == "" && (err != nil || !slices.Equal(keys, strings.Fields(c.want))) ||
			c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, %v, want %s%s", what, keys, err, c.want, c.refused)
		}
	}
}
