package annotation_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

var mac = ipnet.MAC{0x0a, 0x58, 0x0a, 0xf4, 0x01, 0x03}

// Other programs read these bytes.
func TestWireForm(t *testing.T) {
	single := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24"), MAC: mac, Gateways: addrs("10.244.1.1")}
	dual := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24", "fd01::3/64"), MAC: mac, Gateways: addrs("10.244.1.1",
		"fd01::1"),
		Routes: []annotation.Route{{Dest: netip.MustParsePrefix("10.96.0.0/16"), NextHop: netip.MustParseAddr("10.244.1.1")}}}
	for _, c := range []struct{ got, want string }{
		{annotation.MarshalPodNetworks(single),
			`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03","gateway_ips":["10.244.1.1"],` +
				`"ip_address":"10.244.1.3/24","gateway_ip":"10.244.1.1","role":"primary"}}`},
		{annotation.MarshalPodNetworks(dual),
			`{"default":{"ip_addresses":["10.244.1.3/24","fd01::3/64"],"mac_address":"0a:58:0a:f4:01:03",` +
				`"gateway_ips":["10.244.1.1","fd01::1"],"routes":[{"dest":"10.96.0.0/16","nextHop":"10.244.1.1"}],` +
				`"role":"primary"}}`},
		{annotation.MarshalPodClassic(dual),
			`{"gateway_ip":"10.244.1.1","ip_address":"10.244.1.3/24","mac_address":"0a:58:0a:f4:01:03"}`},
		{annotation.MarshalPodClassic(annotation.PodNetwork{}),
			`{"gateway_ip":"","ip_address":"","mac_address":"00:00:00:00:00:00"}`},
		{annotation.MarshalNodeSubnets(prefixes("10.244.1.0/24", "fd01::/64")), `{"default":["10.244.1.0/24","fd01::/64"]}`},
		{annotation.MarshalNodeMgmtPortMAC(mac), `{"default":"0a:58:0a:f4:01:03"}`},
		{annotation.MarshalNodePhysicalNetworks([]string{"storage", "lan", "lan"}), `["lan","storage"]`},
		{annotation.MarshalNodePhysicalNetworks(nil), `[]`},
		{annotation.MarshalNodePrimaryIfAddr(prefixes("fd00::2/64", "172.18.0.2/16")),
			`{"ipv4":"172.18.0.2/16","ipv6":"fd00::2/64"}`},
		{annotation.MarshalNodePrimaryIfAddr(prefixes("172.18.0.2/16")), `{"ipv4":"172.18.0.2/16","ipv6":""}`},
	} {
		if c.got != c.want {
			t.Errorf("\n got %s\nwant %s", c.got, c.want)
		}
	}
}

func TestParseNodeSubnets(t *testing.T) {
	for in, want := range map[string][]netip.Prefix{
		`{"default":["10.244.1.0/24"]}`:             prefixes("10.244.1.0/24"),
		`{"default":"10.244.1.0/24"}`:               prefixes("10.244.1.0/24"), // the older form
		`{"default":["fd01::/64","10.244.1.0/24"]}`: prefixes("10.244.1.0/24", "fd01::/64"),
		// other networks are not checked
		`{"default":["fd01::/64"],"other":["10.0.0.0/8","11.0.0.1/8"]}`: prefixes("fd01::/64"),
	} {
		if got, err := annotation.ParseNodeSubnets(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		``:              `not JSON, want such as {"default":["10.244.1.0/24","fd01:0:0:1::/64"]}`,
		`garbage`:       `"garbage": not JSON, want such as {"default":["10.244.1.0/24"`,
		`10.244.1.0/24`: "not JSON, want such as",
		`[]`: `JSON of another form (array out of place), want such as ` +
			`{"default":["10.244.1.0/24"`,
		`{}`:                                 `no entry for network "default"`,
		`null`:                               `no entry for network "default"`,
		`{"default":null}`:                   `"" is not a CIDR`,
		`{"default":[]}`:                     "the list is empty",
		`{"default":7}`:                      "JSON of another form (number out of place)",
		`{"default":["10.244.1.0"]}`:         `"10.244.1.0" is not a CIDR such as 10.244.1.0/24`,
		`{"default":["10.244.1.1/24"]}`:      "10.244.1.1/24 has host bits set, want 10.244.1.0/24",
		`{"default":["::ffff:1.2.3.0/120"]}`: "IPv4-mapped",
		`{"default":["10.244.1.0/24","10.244.2.0/24"]}`: "10.244.1.0/24 and 10.244.2.0/24 are of the same address family," +
			" want at most one each",
	} {
		got, err := annotation.ParseNodeSubnets(in)
		if err == nil {
			t.Errorf("%s: %v, want an error", in, got)
		} else if !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "parsing k8s.ovn.org/node-subnets ") {
			t.Errorf("%s: error %q, want one about %q that names the annotation", in, err, want)
		}
	}
}

func TestParsePodNetworks(t *testing.T) {
	single := annotation.PodNetwork{IPs: prefixes("10.244.1.3/24"), MAC: mac, Gateways: addrs("10.244.1.1")}
	for in, want := range map[string]annotation.PodNetwork{
		`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
			`"gateway_ips":["10.244.1.1"]}}`: single,
		// the older form
		`{"default":{"ip_address":"10.244.1.3/24","mac_address":"0A-58-0A-F4-01-03","gateway_ip":"10.244.1.1"}}`: single,
		`{"default":{"ip_addresses":["fd01::3/64","10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03"}}`: {
			IPs: prefixes("10.244.1.3/24", "fd01::3/64"), MAC: mac},
	} {
		got, err := annotation.ParsePodNetworks(in)
		if err != nil || !slices.Equal(got.IPs, want.IPs) || got.MAC != want.MAC || !slices.Equal(got.Gateways,
			want.Gateways) {
			t.Errorf("%s: %v, %v; want %v", in, got, err, want)
		}
	}
	const rest = `"mac_address":"0a:58:0a:f4:01:03"}}`
	for in, want := range map[string]string{
		``: `not JSON, want such as {"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
			`"gateway_ips":["10.244.1.1"]}}`,
		`{"default":{"ip_addresses":"10.244.1.3/24"}}`:      `JSON of another form (string out of place), want such as`,
		`{"default":{"routes":[{"dest":"x"}]}}`:             `"x"`,
		`{}`:                                                `no entry for network "default", want one such as {"default":{`,
		`{"default":null}`:                                  "ip_addresses: the list is empty",
		`{"default":{` + rest:                               "ip_addresses: the list is empty",
		`{"default":{"ip_addresses":["x"],` + rest:          `ip_addresses: "x" is not a CIDR`,
		`{"default":{"ip_addresses":["10.244.1.3"],` + rest: `ip_addresses: "10.244.1.3" is not a CIDR`,
		`{"default":{"ip_addresses":["10.244.1.3/24","10.244.1.4/24"],` +
			rest: "of the same address family",
		`{"default":{"ip_addresses":["10.244.1.3/24"]}}`: `mac_address: "" is not an Ethernet address`,
		`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58"}}`: `mac_address: "0a:58" ` +
			`is not an Ethernet address`,
		// EUI-64
		`{"default":{"ip_addresses":["10.244.1.3/24"],` +
			`"mac_address":"00:00:5e:00:53:01:02:03"}}`: "is not an Ethernet address",
		`{"default":{"ip_addresses":["10.244.1.3/24"],"gateway_ips":["gw"],` +
			rest: `gateway_ips: "gw" is not an IP address`,
		`{"default":{"ip_addresses":["10.244.1.3/24"],"gateway_ips":["fe80::1%eth0"],` +
			rest: `gateway_ips: "fe80::1%eth0" is not an IP address`,
		`{"default":{"ip_addresses":["10.244.1.3/24"],"routes":[{}],` +
			rest: `routes: dest "invalid Prefix", nextHop "invalid IP": want a CIDR and an IP address`,
		`{"default":{"ip_addresses":["10.244.1.3/24"],"routes":[{"dest":"1.2.3.4/8"}],` + rest: "routes:",
	} {
		got, err := annotation.ParsePodNetworks(in)
		if err == nil {
			t.Errorf("%s: %v, want an error", in, got)
		} else if !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "parsing k8s.ovn.org/pod-networks ") {
			t.Errorf("%s: error %q, want one about %q that names the annotation", in, err, want)
		}
	}
}

// Errors are short even if the value is long: they go into logs and Events.
func TestErrorsAreBrief(t *testing.T) {
	long := strings.Repeat("\u00e9\x01", 100_000)
	for _, value := range []string{long, `{"default":["` + long + `"]}`, `{"default":{"ip_addresses":["` + long + `"]}}`,
		`{"default":{"routes":[{"dest":"` + strings.Repeat("x", 100_000) + `"}]}}`, `{"default":{"mac_address":"` +
			strings.Repeat("x", 100_000) + `","ip_addresses":["10.0.0.1/8"]}}`} {
		_, node := annotation.ParseNodeSubnets(value)
		_, pod := annotation.ParsePodNetworks(value)
		for _, err := range []error{node, pod} {
			if err == nil || len(err.Error()) > 2000 || !utf8.ValidString(err.Error()) {
				t.Errorf("%.40s: %d bytes of error, want some, few, and valid UTF-8", value, len(fmt.Sprint(err)))
			}
		}
	}
}

func TestParseServiceHealthCheck(t *testing.T) {
	for in, want := range map[string]annotation.HealthCheck{
		`{}`: {Interval: 5, Timeout: 20, Successes: 3, Failures: 3},
		` {"interval": 1, "timeout": 2, "successes": 1, "failures": 100} `: {Interval: 1, Timeout: 2, Successes: 1,
			Failures: 100},
		`{"interval":3600}`: {Interval: 3600, Timeout: 20, Successes: 3, Failures: 3},
	} {
		if got, err := annotation.ParseServiceHealthCheck(in); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		``: "not JSON, want such as " +
			`{"interval":5,"timeout":20,"successes":3,"failures":3}`,
		`yes`:                                 "not JSON, want such as",
		`{"interval":5`:                       "not JSON, want such as",
		`5`:                                   "JSON of another form (number out of place), want such as",
		`null`:                                "JSON of another form (null out of place), want such as",
		`{"interval":"5s"}`:                   "JSON of another form (string out of place), want such as",
		`{"interval":1.5}`:                    "JSON of another form (number 1.5 out of place), want such as",
		`{"period":5}`:                        `unknown field "period"`,
		`{} {}`:                               "something after the JSON object",
		`{"interval":0}`:                      "interval is 0, want 1 to 3600",
		`{"timeout":3601}`:                    "timeout is 3601, want 1 to 3600",
		`{"successes":-1}`:                    "successes is -1, want 1 to 100",
		`{"failures":101}`:                    "failures is 101, want 1 to 100",
		`{"failures":1000000000000000000000}`: "out of place",
	} {
		got, err := annotation.ParseServiceHealthCheck(in)
		if err == nil || got != (annotation.HealthCheck{}) {
			t.Errorf("%s: %v, %v; want an error", in, got, err)
		} else if !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "parsing k8s.ovn.org/service-health-check ") {
			t.Errorf("%s: error %q, want one about %q that names the annotation", in, err, want)
		}
	}
}

// An annotation that is too long is not parsed, whatever it says.
func TestLongAnnotationsAreNotParsed(t *testing.T) {
	const users, nodes = 16 << 10, 256 << 10
	limits := map[string]int{`{"default":"10.244.1.0/24"}`: nodes, `{"default":{"ipv4":"100.64.1.2/24"}}`: nodes}
	for key, parse := range map[string]func(string) error{
		`{"default":"10.244.1.0/24"}`: func(v string) error { _, err := annotation.ParseNodeSubnets(v); return err },
		`{"default":{"mode":""}}`:     func(v string) error { _, err := annotation.ParseL3Gateway(v); return err },
		`{"default":{"ipv4":"100.64.1.2/24"}}`: func(v string) error {
			_, _, err := annotation.ReadGatewayJoins(v).In(names.Own)
			return err
		},
		`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03"}}`: func(v string) error {
			_, err := annotation.ParsePodNetworks(v)
			return err
		},
		`["lan"]`:        func(v string) error { _, err := annotation.ParseNodePhysicalNetworks(v); return err },
		`{"interval":5}`: func(v string) error { _, err := annotation.ParseServiceHealthCheck(v); return err },
	} {
		limit := cmp.Or(limits[key], users)
		long := strings.Repeat(" ", limit)
		if err := parse(key + long[:len(long)-len(key)]); err != nil {
			t.Errorf("%s, %d bytes: %v", key, limit, err)
		}
		if err := parse(key + long); err == nil || !strings.Contains(err.Error(), fmt.Sprint("want at most ", limit)) ||
			len(err.Error()) > 1000 {
			t.Errorf("%s, more than %d bytes: %.200v", key, limit, err)
		}
	}
}

func TestNodePhysicalNetworks(t *testing.T) {
	for value, want := range map[string][]string{`[]`: {}, `["storage","lan","lan"]`: {"lan", "storage"}} {
		got, err := annotation.ParseNodePhysicalNetworks(value)
		if err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("%s: %#v, %v, want %q", value, got, err, want)
		}
	}
	for _, bad := range []string{``, `null`, `lan`, `{"lan":1}`, `[1]`} {
		if got, err := annotation.ParseNodePhysicalNetworks(bad); err == nil || got != nil ||
			!strings.Contains(err.Error(), annotation.NodePhysicalNetworks) {
			t.Errorf("%q: %q, %v, want an error that names the annotation", bad, got, err)
		}
	}
}
