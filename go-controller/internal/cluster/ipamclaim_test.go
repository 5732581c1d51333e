package cluster

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A claim names its network as pods do, or as the large upstream project does.
func TestNetworkOfClaim(t *testing.T) {
	s := NewState(config.DefaultCluster())
	all := &LabelSelector{}
	for _, o := range []Object{&Namespace{Name: "shop"}, &UserNetwork{Name: Name{Name: "shared"}, Selects: all,
		Network: &Network{Name: ".shared", Topology: Layer2}}} {
		s.Apply(Event{Ref: o.Ref(), New: o})
	}
	for name, want := range map[string]names.Network{
		"blue": "shop.blue", "shop.blue": "shop.blue", "shop_blue": "shop.blue", "shop/blue": "shop.blue",
		"default/red": "default.red", "default_red": "default.red", "bank/blue": "shop.bank/blue",
		"team.blue": "shop.team.blue", "shared": ".shared", "cluster_udn_shared": ".shared", "shop_shared": ".shared",
		"cluster_udn_other": "shop.other",
	} {
		c := &IPAMClaim{Name: Name{"shop", "vm"}, Network: name}
		if got := s.NetworkOfClaim(c); got != want {
			t.Errorf("%s means %s, want %s", name, got, want)
		}
	}
}
