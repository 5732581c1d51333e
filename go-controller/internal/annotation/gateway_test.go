package annotation_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func gateway() *annotation.L3Gateway {
	return &annotation.L3Gateway{Bridge: "breth0", Network: "physnet", Port: "breth0_n1", MAC: ipnet.MAC{2, 0x42, 0xac,
		0x12, 0, 3},
		IPs: prefixes("172.18.0.3/16", "fc00::3/64"), NextHops: addrs("172.18.0.1", "fc00::1"), VLAN: 7, NodePort: true,
		Rampout: prefixes("10.244.1.0/24"),
		MTU:     1500, PodMTU: 1400, Out: "broken"}
}

func TestL3GatewayWireForm(t *testing.T) {
	single := gateway()
	single.IPs, single.NextHops, single.Rampout, single.VLAN = single.IPs[:1], single.NextHops[:1], nil, 0
	single.MTU, single.PodMTU, single.Out = 0, 0, ""
	for _, c := range []struct{ got, want string }{
		{annotation.MarshalL3Gateway(single),
			`{"default":{"mode":"shared","bridge-id":"breth0","interface-id":"breth0_n1","mac-address":"02:42:ac:12:00:03",` +
				`"ip-addresses":["172.18.0.3/16"],"ip-address":"172.18.0.3/16","next-hops":["172.18.0.1"],` +
				`"next-hop":"172.18.0.1","node-port-enable":"true","vlan-id":"0","physical-network":"physnet"}}`},
		{annotation.MarshalL3Gateway(gateway()),
			`{"default":{"mode":"shared","bridge-id":"breth0","interface-id":"breth0_n1","mac-address":"02:42:ac:12:00:03",` +
				`"ip-addresses":["172.18.0.3/16","fc00::3/64"],"next-hops":["172.18.0.1","fc00::1"],"node-port-enable":"true",` +
				`"vlan-id":"7","physical-network":"physnet","rampout-ip-subnets":["10.244.1.0/24"],"mtu":1500,"pod-mtu":1400,` +
				`"out-of-service":"broken"}}`},
		{annotation.MarshalL3Gateway(nil), `{"default":{"mode":"disabled"}}`},
		{annotation.MarshalGatewayJoinAddrs(prefixes("100.64.1.2/24")), `{"default":{"ipv4":"100.64.1.2/24","ipv6":""}}`},
	} {
		if c.got != c.want {
			t.Errorf("\n got %s\nwant %s", c.got, c.want)
		}
	}
}

func TestParseL3Gateway(t *testing.T) {
	if g, err := annotation.ParseL3Gateway(`{"default":{"mode":"disabled"}}`); g != nil || err != nil {
		t.Errorf("a node that is no gateway: %v, %v", g, err)
	}
	older := `{"default":{"mode":"shared","bridge-id":"b","interface-id":"b_n","mac-address":"02:00:00:00:00:01",` +
		`"ip-address":"172.18.0.3/16","next-hop":"172.18.0.1"}}`
	if g, err := annotation.ParseL3Gateway(older); err != nil || !slices.Equal(g.IPs, prefixes("172.18.0.3/16")) ||
		!slices.Equal(g.NextHops, addrs("172.18.0.1")) || g.Network != "physnet" {
		t.Errorf("the older form: %+v, %v", g, err)
	}
	const head = `{"default":{"mode":"shared","bridge-id":"b","interface-id":"b_n","mac-address":"02:00:00:00:00:01"`
	const whole = head + `,"ip-addresses":["172.18.0.3/16"]`
	for in, want := range map[string]string{
		`x`:                            "not JSON, want such as",
		`{}`:                           `no entry for network "default"`,
		`{"default":{"mode":"local"}}`: `mode: "local", want "shared" or "disabled"`,
		`{"default":{"mode":"shared","interface-id":"b_n"}}`:                 `bridge-id "", interface-id "b_n"`,
		`{"default":{"mode":"shared","bridge-id":"b","interface-id":"b_n"}}`: `mac-address: "" is not an Ethernet address`,
		head + `}}`: "ip-addresses: the list is empty",
		head + `,"ip-addresses":["172.18.0.3"]}}`: `ip-addresses: "172.18.0.3" is not a CIDR`,
		whole + `,"next-hops":["fc00::1"]}}`: "next-hops: fc00::1: want at most one of each address " +
			"family that ip-addresses has",
		whole + `,"next-hops":["172.18.0.1","172.18.0.2"]}}`: "next-hops: 172.18.0.2: want at most one",
		whole + `,"next-hops":["gw"]}}`:                      `next-hops: "gw" is not an IP address`,
		whole + `,"mtu":100}}`:                               "mtu: 100, want 576 to 65535, or 0 if unknown",
		whole + `,"pod-mtu":-1}}`:                            "pod-mtu: -1, want 576 to 65535",
		whole + `,"vlan-id":"4095"}}`:                        `vlan-id: "4095", want a number from 0 (none) to 4094`,
		whole + `,"rampout-ip-subnets":["10.0.0.1/8"]}}`:     `rampout-ip-subnets: "10.0.0.1/8" is not a CIDR`,
	} {
		g, err := annotation.ParseL3Gateway(in)
		if err == nil {
			t.Errorf("%s: %+v, want an error", in, g)
		} else if !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "parsing k8s.ovn.org/l3-gateway-config ") {
			t.Errorf("%s: error %q, want one about %q that names the annotation", in, err, want)
		}
	}
}

func TestParseGatewayJoinAddrs(t *testing.T) {
	for in, want := range map[string]string{
		`x`:                               "not JSON",
		`{"default":{}}`:                  "the list is empty",
		`{"default":{"ipv4":"100.64.1"}}`: `"100.64.1" is not a CIDR`,
	} {
		if p, _, err := annotation.ReadGatewayJoins(in).In(names.Own); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error about %q", in, p, err, want)
		}
	}
}

func FuzzParseL3Gateway(f *testing.F) {
	f.Add(annotation.MarshalL3Gateway(gateway()))
	f.Fuzz(func(t *testing.T, value string) {
		want, err := annotation.ParseL3Gateway(value)
		if err != nil {
			return
		}
		got, err := annotation.ParseL3Gateway(annotation.MarshalL3Gateway(want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v came back as %+v, %v", value, want, got, err)
		}
	})
}

func FuzzParseGatewayJoinAddrs(f *testing.F) {
	f.Add(`{"default":{"ipv4":"100.64.1.2/24","ipv6":"fd98::2/64"}}`)
	f.Fuzz(func(t *testing.T, value string) {
		want, ok, err := annotation.ReadGatewayJoins(value).In(names.Own)
		if err != nil || !ok {
			return
		}
		got, _, err := annotation.ReadGatewayJoins(annotation.MarshalGatewayJoinAddrs(want)).In(names.Own)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v came back as %v, %v", value, want, got, err)
		}
	})
}
