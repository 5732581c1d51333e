package annotation_test

import (
	"net/netip"
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
