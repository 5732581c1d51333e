package config

import (
	"slices"
	"strings"
	"testing"
)

func TestPhysicalNetworks(t *testing.T) {
	list, err := ParsePhysicalNetworks("--physical-networks", "lan, storage:100-199,storage:300,voice:30,all:0-4094")
	want := []PhysicalNetwork{{"lan", 0, 0}, {"storage", 100, 199}, {"storage", 300, 300}, {"voice", 30, 30},
		{"all", 0, 4094}}
	if err != nil || !slices.Equal(list, want) {
		t.Fatalf("%v, %v; want %v", list, err, want)
	}
	c := Cluster{PhysicalNetworks: list}
	for _, v := range []struct {
		name    string
		vlan    int
		refused string
	}{
		{"lan", 0, ""}, {"lan", 7, "allows lan"}, {"all", 0, ""}, {"all", 4094, ""},
		{"storage", 100, ""}, {"storage", 199, ""}, {"storage", 300, ""},
		{"storage", 0, "allows storage:100-199,storage:300"}, {"storage", 200, "VLAN 200"},
		{"voice", 31, "allows voice:30"}, {"physnet", 0, "not one of --physical-networks"},
	} {
		err := c.AllowsPhysical(v.name, v.vlan)
		if (err == nil) != (v.refused == "") || err != nil && !strings.Contains(err.Error(), v.refused) {
			t.Errorf("%s, VLAN %d: %v, want %q", v.name, v.vlan, err, v.refused)
		}
	}
	for _, s := range []string{":3", "a:4095", "a:9-3", "a:x", "a:1-", "a:-5", "a b"} {
		if list, err := ParsePhysicalNetworks("--physical-networks", s); err == nil {
			t.Errorf("%q: %v, want an error", s, list)
		}
	}
}
