package annotation_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Each network's entry is read and written alone. Entries of other networks stay as they are, also those with fields
// and forms that this program does not know.
func TestSeveralNetworks(t *testing.T) {
	const foreign = `"team/red":{"ip_addresses":["10.1.0.3/16","10.1.0.4/16"],"tunnel_id":7}`
	v := "{" + foreign + "}"
	own := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24"), MAC: mac, Gateways: addrs("10.244.1.1")}
	blue := annotation.PodNetwork{IPs: prefixes("10.244.1.9/24", "fd01::9/64"), MAC: mac,
		Routes: []annotation.Route{{Dest: prefixes("10.244.0.0/16")[0], NextHop: addrs("10.244.1.1")[0]}}}
	v = annotation.SetPodNetwork(v, "team/blue", annotation.RoleSecondary, blue)
	v = annotation.SetPodNetwork(v, "default", annotation.RolePrimary, own)
	want := `{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"gateway_ips":["10.244.1.1"],"ip_address":"10.244.1.3/24","gateway_ip":"10.244.1.1","role":"primary"},` +
		`"team/blue":{"ip_addresses":["10.244.1.9/24","fd01::9/64"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"routes":[{"dest":"10.244.0.0/16","nextHop":"10.244.1.1"}],"role":"secondary"},` + foreign + "}"
	if v != want {
		t.Errorf("\n got %s\nwant %s", v, want)
	}
	for key, n := range map[string]annotation.PodNetwork{"default": own, "team/blue": blue} {
		got, ok, err := annotation.PodNetworkIn(v, key)
		if !ok || err != nil || !slices.Equal(got.IPs, n.IPs) || !slices.Equal(got.Routes, n.Routes) ||
			!slices.Equal(got.Gateways, n.Gateways) {
			t.Errorf("%s: %+v, %v, %v; want %+v", key, got, ok, err, n)
		}
	}
	if _, ok, err := annotation.PodNetworkIn(v, "team/green"); ok || err != nil {
		t.Errorf("an entry that is not there: %v, %v", ok, err)
	}
	if _, _, err := annotation.PodNetworkIn(v, "team/red"); err == nil {
		t.Error("an entry of another form is read")
	}
	v = annotation.RemovePodNetwork(annotation.RemovePodNetwork(v, "team/blue"), "default")
	if v != "{"+foreign+"}" {
		t.Errorf("without ours: %s", v)
	}
	if v = annotation.RemovePodNetwork(v, "team/red"); v != "" {
		t.Errorf("without any: %q", v)
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
		if got := annotation.RemovePodNetwork(v, "default"); got != "" {
			t.Errorf("without: %.20q: %s", v, got)
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
