package annotation_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Each attachment's entry is read alone. Only the one with gateways is the pod's primary network.
func TestSeveralNetworks(t *testing.T) {
	own := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24"), MAC: mac, Gateways: addrs("10.244.1.1")}
	blue := annotation.PodNetwork{IPs: prefixes("10.244.1.9/24", "fd01::9/64"), MAC: mac}
	v := annotation.MarshalAttachments(map[string]annotation.PodNetwork{"default": own, "blue/net1": blue})
	want := `{"blue/net1":{"ip_addresses":["10.244.1.9/24","fd01::9/64"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"role":"secondary"},` + strings.TrimPrefix(annotation.MarshalPodNetworks(own), "{")
	if v != want {
		t.Errorf("\n got %s\nwant %s", v, want)
	}
	v = strings.Replace(v, "{", `{"blue/net2":{"ip_addresses":7},`, 1)
	for key, n := range map[string]annotation.PodNetwork{"default": own, "blue/net1": blue} {
		got, ok, err := annotation.PodNetworkIn(v, key)
		if !ok || err != nil || !slices.Equal(got.IPs, n.IPs) || !slices.Equal(got.Gateways, n.Gateways) {
			t.Errorf("%s: %+v, %v, %v; want %+v", key, got, ok, err, n)
		}
	}
	if _, ok, err := annotation.PodNetworkIn(v, "green/net1"); ok || err != nil {
		t.Errorf("an entry that is not there: %v, %v", ok, err)
	}
	if _, _, err := annotation.PodNetworkIn(v, "blue/net2"); err == nil {
		t.Error("an entry of another form is read")
	}
	if got := annotation.PodNetworksIn(v, "blue"); len(got) != 1 || !slices.Equal(got["net1"].IPs, blue.IPs) {
		t.Errorf("in blue: %+v, want net1 alone", got)
	}
	if got := annotation.PodNetworksIn(v, names.Own); len(got) != 1 || !slices.Equal(got[""].IPs, own.IPs) {
		t.Errorf("in the cluster's own network: %+v", got)
	}
}

// An attachment to another network may have no addresses, routes to the network, and an MTU.
func TestFurtherAttachments(t *testing.T) {
	own := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24"), MAC: mac, Gateways: addrs("10.244.1.1")}
	blue := annotation.PodNetwork{IPs: prefixes("10.99.0.3/24", "fd99::3/64"), MAC: mac, MTU: 1300,
		Routes: []annotation.Route{{Dest: netip.MustParsePrefix("10.99.0.0/16"), NextHop: addrs("10.99.0.1")[0]}}}
	lan := annotation.PodNetwork{MAC: mac}
	want := map[string]annotation.PodNetwork{"default": own, "shop.blue/net1": blue, "shop.lan/net2": lan}
	v := annotation.MarshalAttachments(want)
	text := strings.TrimSuffix(annotation.MarshalPodNetworks(own), "}") +
		`,"shop.blue/net1":{"ip_addresses":["10.99.0.3/24","fd99::3/64"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"routes":[{"dest":"10.99.0.0/16","nextHop":"10.99.0.1"}],"mtu":1300,"role":"secondary"},` +
		`"shop.lan/net2":{"mac_address":"0a:58:0a:f4:01:03","role":"secondary"}}`
	if v != text {
		t.Errorf("\n got %s\nwant %s", v, text)
	}
	if got, err := annotation.PodAttachments(v); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got := annotation.PodNetworksIn(v, "shop.lan"); len(got) != 1 || got["net2"].MAC != mac {
		t.Errorf("in shop.lan: %+v, want net2 alone", got)
	}
	if got, err := annotation.PodAttachments(""); err != nil || len(got) != 0 {
		t.Errorf("no annotation: %+v, %v", got, err)
	}
}

// What an attachment can't have is refused, with an error that names its entry.
func TestFurtherAttachmentsRefused(t *testing.T) {
	for entry, want := range map[string]string{
		`"x/net1":{}`:                 `entry "x/net1": mac_address: "" is not an Ethernet address`,
		`"x":{"mac_address":"MAC"}`:   `entry "x": ip_addresses: the list is empty`,
		`"x/net1":{"ip_addresses":7}`: `entry "x/net1": JSON of another form (number out of place)`,
		`"x/net1":7`:                  `entry "x/net1": JSON of another form (number out of place)`,
		`"x/net1":{"mac_address":"MAC","ip_addresses":["10.0.0.1"]}`:              `"10.0.0.1" is not a CIDR`,
		`"x/net1":{"mac_address":"MAC","mtu":575}`:                                "mtu: 575: want 576 to 65535 bytes",
		`"x/net1":{"mac_address":"MAC","mtu":-1}`:                                 "mtu: -1: want 576 to 65535 bytes",
		`"x/net1":{"mac_address":"MAC","mtu":65536}`:                              "mtu: 65536: want 576 to 65535 bytes",
		`"x/net1":{"mac_address":"MAC","mtu":1279,"ip_addresses":["fd99::3/64"]}`: "mtu: 1279: want 1280 to 65535",
		`"x/net1":{"mac_address":"MAC","mtu":1e9}`:                                "out of place",
		`"x/net1":{"mac_address":"MAC","routes":[{"dest":"10.0.0.0/8"}]}`:         "want a CIDR and an IP address",
	} {
		v := "{" + strings.ReplaceAll(entry, "MAC", mac.String()) + "}"
		got, err := annotation.PodAttachments(v)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error about %q", v, got, err, want)
		}
	}
	for _, mtu := range []int{0, 576, 1280, 9000, 65535} {
		v := annotation.MarshalAttachments(map[string]annotation.PodNetwork{"x/net1": {MAC: mac, MTU: mtu}})
		if got, ok, err := annotation.PodNetworkIn(v, "x/net1"); !ok || err != nil || got.MTU != mtu {
			t.Errorf("MTU %d: %v, %v, %v", mtu, got, ok, err)
		}
	}
}

func TestSeveralNetworksOfANode(t *testing.T) {
	v := annotation.SetNodeSubnets(`{"gone":[],"red":"10.1.0.0/24","odd":{"a":1}}`, map[names.Network][]netip.Prefix{
		"blue": prefixes("10.244.1.0/24", "fd01::/64"), names.Own: prefixes("10.244.1.0/24"), "gone": nil, "never": nil})
	want := `{"blue":["10.244.1.0/24","fd01::/64"],"default":["10.244.1.0/24"],"odd":{"a":1},"red":"10.1.0.0/24"}`
	if v != want {
		t.Errorf("\n got %s\nwant %s", v, want)
	}
	for network, subnets := range map[names.Network]string{
		names.Own: "10.244.1.0/24", "blue": "10.244.1.0/24 fd01::/64", "red": "10.1.0.0/24", "green": "",
	} {
		got, ok, err := annotation.NodeSubnetsIn(v, network)
		if ok != (subnets != "") || err != nil || !slices.Equal(got, prefixes(strings.Fields(subnets)...)) {
			t.Errorf("%s: %v, %v, %v; want %s", network, got, ok, err, subnets)
		}
	}
	j := annotation.SetGatewayJoinAddrs(annotation.MarshalGatewayJoinAddrs(prefixes("100.64.1.2/24")),
		map[names.Network][]netip.Prefix{"blue": prefixes("100.88.0.2/24", "fd97::2/64")})
	want = `{"blue":{"ipv4":"100.88.0.2/24","ipv6":"fd97::2/64"},"default":{"ipv4":"100.64.1.2/24","ipv6":""}}`
	if j != want {
		t.Errorf("\n got %s\nwant %s", j, want)
	}
}

// Nothing of a malformed annotation is kept, and writing into one never fails.
func TestSetInMalformed(t *testing.T) {
	for _, v := range []string{"", "x", "[]", "null", `{"default":`, "7", strings.Repeat("[", 20_000)} {
		if got := annotation.SetNodeSubnets(v,
			map[names.Network][]netip.Prefix{names.Own: prefixes("10.0.0.0/24")}); got != `{"default":["10.0.0.0/24"]}` {
			t.Errorf("%.20q: %s", v, got)
		}
	}
	long := `{"x":"` + strings.Repeat("a", 100_000) + `"}`
	if _, _, err := annotation.PodNetworkIn(annotation.Kept(long), "default"); err == nil {
		t.Error("an annotation that is too long is not refused")
	}
	if annotation.Kept(`{"x":1}`) != `{"x":1}` {
		t.Error("an annotation of ordinary length is cut")
	}
}
